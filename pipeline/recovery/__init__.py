"""How a partition's state is restored, and what is written so that it can be."""
