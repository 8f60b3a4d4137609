"""What workers have written, record by record, for people and for scripts."""
