"""What workers have written, record by record, for people and for scripts."""

from pipeline.inspect.kinds import Kind
from pipeline.inspect.lines import heading, show
from pipeline.inspect.objects import as_object
from pipeline.inspect.reading import read
from pipeline.inspect.start import Last, parse_start

__all__ = ["Kind", "Last", "as_object", "heading", "parse_start", "read", "show"]
