"""A run summed up: its cases, its mistakes, and what simpler methods would have made of the same events."""

from pipeline.report.figures import Report, Window
from pipeline.report.picture import check_format, draw
from pipeline.report.reading import summarize
from pipeline.report.terminal import render

__all__ = ["Report", "Window", "check_format", "draw", "render", "summarize"]
