"""A real Apache Kafka for tests, the demo and first steps: embedded, in Docker, or the user's own.

* `available.available_broker` is for tests and the demo. Inside its ``with`` block it provides the first of:
  the user's own Kafka, one in Docker, an embedded one.
* `temporary.temporary_broker` is an embedded broker that ends with its ``with`` block.
* `embedded.start`, `stop` and `status` manage an embedded broker that goes on after the command, with its
  data in a folder.

The embedded broker needs the extra `broker`: ``pip install "forks-stream[broker]"``.
"""
