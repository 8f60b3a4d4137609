"""Batches in columns: what is planned, and the records that are written."""
