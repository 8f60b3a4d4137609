"""The papers' experiments on a user's data: what `python -m research` does."""

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
