"""What does one see while it runs? Nothing that outputs depend on reads anything of this."""
