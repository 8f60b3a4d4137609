"""How Kafka is spoken to: clients, topics, offsets, logs."""
