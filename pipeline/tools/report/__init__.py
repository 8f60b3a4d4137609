"""Sum up a run: its counters, its mistakes, and the mistakes of simpler methods on the same events."""

from pipeline.tools.report.figures import Report, Window
from pipeline.tools.report.reading import summarize
from pipeline.tools.report.render import render

__all__ = ["Report", "Window", "render", "summarize"]
