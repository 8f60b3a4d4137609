"""How are candidates scored before one is shown? Followers hold the workers' models, and write nothing."""
