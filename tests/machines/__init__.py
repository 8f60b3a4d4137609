"""The tests on other machines: other systems, Pythons, libraries and kinds of processors."""
