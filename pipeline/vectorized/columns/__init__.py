"""Columns of messages, ids, texts and outcomes."""
