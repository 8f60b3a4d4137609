"""What one partition does with its messages: pure, without clock, I/O or Kafka."""
