"""What can be set: a pure tree of settings, and its loader from file, environment and flags."""
