"""What tells a client why it does not get in."""
