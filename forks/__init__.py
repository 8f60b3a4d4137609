"""Fast second-order online kernel learning with incremental sketching (FORKS)."""
