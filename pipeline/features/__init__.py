"""What is known of users and videos: tables, running statistics, and the target of learning."""
