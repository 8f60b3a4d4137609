"""What can be set: typed and checked settings, and their loader from file, environment and flags."""
