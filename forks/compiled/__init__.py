"""Primitives of the compiled loops, each with a fixed order of summation.

Memory aligned to cache lines, vectors of eight numbers (SIMD), products of small matrices, and the
exponential function.
"""
