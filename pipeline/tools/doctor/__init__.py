"""Checks of everything that a worker needs, each with what was found and what to do."""
