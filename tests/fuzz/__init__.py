"""Mutated records, in any number: `python -m tests.fuzz TARGET --count 100000 --seed 1`."""
