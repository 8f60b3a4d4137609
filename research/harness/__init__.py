"""What an experiment is, how it runs, and how its results are stored."""
