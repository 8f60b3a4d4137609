"""Which label belongs to which prediction, and what is too late."""
