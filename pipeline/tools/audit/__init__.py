"""Everything that was written, derived again from the topics and compared bit for bit."""

from pipeline.tools.audit.committed_view import View, take_view
from pipeline.tools.audit.group import Report, examine
from pipeline.tools.audit.render import render

__all__ = ["Report", "View", "examine", "render", "take_view"]
