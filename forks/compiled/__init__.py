"""Compiled primitives of the event loop, in a fixed order of summation."""
