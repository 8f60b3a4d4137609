"""Primitives of the compiled loops, each with a fixed order of summation.

Memory aligned to cache lines, vectors of eight numbers (SIMD), products of small matrices, and functions that
have other bits in another C library: exponential, logarithm, cosine and sine, normal distribution.
"""
