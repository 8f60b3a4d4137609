"""Learners altered to explain printed figures."""
