"""What workers read and have written, record by record, for people and for scripts."""
