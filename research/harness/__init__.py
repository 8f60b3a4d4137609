"""Streams, learners and trials of an experiment, their execution, and the store and summary of results."""
