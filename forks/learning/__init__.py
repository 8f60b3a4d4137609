"""The event loop, its stages, and the columns that it works on."""
