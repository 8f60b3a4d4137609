"""Base classes of the rivals: for any events, for vectors, with a budget, and with standardised columns."""
