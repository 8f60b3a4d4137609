"""A run summed up: its cases, its mistakes, and what simpler methods would have made of the same events."""

from pipeline.tools.report.figures import Report, Window
from pipeline.tools.report.reading import summarize
from pipeline.tools.report.render import render

__all__ = ["Report", "Window", "render", "summarize"]
