"""Send dead letters back to their inputs, each once."""
