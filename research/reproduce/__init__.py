"""The papers' experiments on a user's data: reading it, running them, writing tables, figures and a page."""

from research.reproduce.data import DataFolder
from research.reproduce.findings import findings_of, page_of, read_tables
from research.reproduce.render import render
from research.reproduce.reproduction import ExperimentOptions, Reproduction, reproduce

__all__ = [
    "DataFolder",
    "ExperimentOptions",
    "Reproduction",
    "findings_of",
    "page_of",
    "read_tables",
    "render",
    "reproduce",
]
