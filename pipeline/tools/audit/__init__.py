"""Derive all outputs again from the topics, and compare them bit for bit."""

from pipeline.tools.audit.audit_text import render
from pipeline.tools.audit.committed_view import View, capture_view
from pipeline.tools.audit.group import Report, run_audit

__all__ = ["Report", "View", "capture_view", "render", "run_audit"]
