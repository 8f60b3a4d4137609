"""What rivals have in common."""
