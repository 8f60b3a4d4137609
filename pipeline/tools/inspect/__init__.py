"""Show what workers have written, record by record, as text or as JSON."""

from pipeline.tools.inspect.kinds import Kind
from pipeline.tools.inspect.objects import as_object
from pipeline.tools.inspect.reading import read
from pipeline.tools.inspect.start import Last, parse_start
from pipeline.tools.inspect.text import heading, show

__all__ = ["Kind", "Last", "as_object", "heading", "parse_start", "read", "show"]
