"""What a user is told when a cluster, a record or a file refuses or is refused: the tables of docs/security.md."""
