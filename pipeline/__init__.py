"""The Kafka component: exactly-once predictions, delayed labels and learning in one transaction."""
