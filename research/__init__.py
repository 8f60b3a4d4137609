"""The papers' experiments: not part of the product, run from a checkout with `python -m research`."""
