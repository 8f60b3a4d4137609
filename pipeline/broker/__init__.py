"""A real Apache Kafka for tests, the demo and trying out: embedded, in Docker, or the user's own.

`available_broker` gives an address for as long as a ``with`` block lasts and is what tests and the demo use.
`temporary_broker` is the embedded broker that ends with the block. `start`, `stop` and `status` manage one
that outlives the command, with its data in a folder.
"""

from pipeline.broker.available import available_broker
from pipeline.broker.embedded import RunningBroker, start, status, stop
from pipeline.broker.temporary import temporary_broker

__all__ = ["RunningBroker", "available_broker", "start", "status", "stop", "temporary_broker"]
