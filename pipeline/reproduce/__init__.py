"""The papers' experiments on a user's data: what `forks reproduce` does."""

from pipeline.reproduce.data import DataFolder
from pipeline.reproduce.findings import findings_of, page_of, read_tables
from pipeline.reproduce.render import render
from pipeline.reproduce.reproduction import Order, Reproduction, reproduce

__all__ = [
    "DataFolder",
    "Order",
    "Reproduction",
    "findings_of",
    "page_of",
    "read_tables",
    "render",
    "reproduce",
]
