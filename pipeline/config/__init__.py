"""What can be set: the tree of settings, and the loader of file, environment and flags."""
