"""Sum up a run: its counters, its mistakes, and the mistakes of simpler methods on the same events."""

from pipeline.tools.report.figures import Report, Window
from pipeline.tools.report.off_policy import OffPolicy
from pipeline.tools.report.reading import summarize
from pipeline.tools.report.report_text import render

__all__ = ["OffPolicy", "Report", "Window", "render", "summarize"]
