"""The processes that read, commit, and survive rebalances."""
