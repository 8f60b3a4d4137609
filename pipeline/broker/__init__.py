"""A real Apache Kafka for tests, the demo and first steps: embedded, in Docker, or the user's own.

* `available_broker` is for tests and the demo. Inside its ``with`` block it provides the first Kafka of: the
  user's own, one in Docker, an embedded one.
* `temporary_broker` is an embedded broker that ends with its ``with`` block.
* `start`, `stop` and `status` manage an embedded broker that goes on after the command, with its data in a
  folder.

The embedded broker needs the extra `broker`: ``pip install "forks-stream[broker]"``.
"""

from pipeline.broker.available import available_broker
from pipeline.broker.embedded import RunningBroker, start, status, stop
from pipeline.broker.temporary import temporary_broker

__all__ = ["RunningBroker", "available_broker", "start", "status", "stop", "temporary_broker"]
