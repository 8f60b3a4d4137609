"""Linear algebra by LAPACK on one thread: least squares and symmetric eigenvectors."""
