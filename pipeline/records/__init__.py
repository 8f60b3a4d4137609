"""What crosses the topics, byte for byte."""
