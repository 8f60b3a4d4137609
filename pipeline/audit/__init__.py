"""Everything that was written, derived again from the topics and compared bit for bit."""

from pipeline.audit.examination import Report, examine
from pipeline.audit.terminal import render
from pipeline.audit.view import View, take_view

__all__ = ["Report", "View", "examine", "render", "take_view"]
