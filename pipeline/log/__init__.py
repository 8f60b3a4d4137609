"""The log of what was committed: read, checked and followed."""
