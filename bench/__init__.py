"""Measurements: ``python -m bench NAME`` tells on stderr how far it is and ends in one line of JSON."""
