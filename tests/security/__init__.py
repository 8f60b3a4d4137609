"""What a cluster, or a command, says when it refuses something: the tables of refusals.md."""
