"""Learners altered to explain printed figures: as published, with other update rules, and in plain NumPy."""
