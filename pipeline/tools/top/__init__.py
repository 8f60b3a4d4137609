"""What a worker shows of itself, in a terminal."""
