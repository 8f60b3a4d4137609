"""Decompositions of small matrices in compiled loops with a fixed order: the same bits on every machine."""
