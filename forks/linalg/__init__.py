"""LAPACK on one thread."""
