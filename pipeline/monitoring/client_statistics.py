"""The part of librdkafka's statistics that tells whether brokers and queues are in order.

https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md describes all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

UP: Final = "UP"
"""The state of a broker that requests can be sent to."""


class BrokerMetrics(NamedTuple):
    """A client's connection to one broker."""

    up: bool
    round_trip_mean_seconds: float
    """Over the last interval, as the next."""
    round_trip_p99_seconds: float
    errors: int
    """Requests that failed or were not answered in time."""


class ClientMetrics(NamedTuple):
    """One client of librdkafka at its last statistics."""

    brokers: Mapping[int, BrokerMetrics]
    """By the broker's id."""
    queued_messages: int
    """Of a producer: messages not yet acknowledged. Of a consumer: messages fetched and not yet read."""
    queued_bytes: int
    sent_bytes: int
    """Since the client was made, as the next."""
    received_bytes: int
    waiting_requests: int
    """Requests that wait to be sent or to be answered."""


class ClientStatistics:
    """Keeps the metrics of a client's last statistics; to be given to it as ``stats_cb``.

    Attributes
    ----------
    metrics
        None until the first statistics came. Replaced, never changed.
    """

    def __init__(self) -> None:
        self.metrics: ClientMetrics | None = None

    def __call__(self, text: str) -> None:
        """Take the statistics, which are JSON."""
        self.metrics = client_metrics(orjson.loads(text))


def client_metrics(statistics: Mapping[str, Any]) -> ClientMetrics:
    """Return the metrics of a client's statistics.

    A client knows a broker by its id once it has heard of it; before, and for the address that it was given,
    the id is -1.
    """
    every = statistics["brokers"].values()
    brokers = [broker for broker in every if broker["nodeid"] >= 0]
    messages, size = statistics["msg_cnt"], statistics["msg_size"]
    if statistics["type"] == "consumer":
        fetched = [
            partition
            for topic in statistics["topics"].values()
            for partition in topic["partitions"].values()
            if partition["partition"] >= 0
        ]
        messages = sum(partition["fetchq_cnt"] for partition in fetched)
        size = sum(partition["fetchq_size"] for partition in fetched)
    return ClientMetrics(
        {broker["nodeid"]: _broker(broker) for broker in brokers},
        messages,
        size,
        statistics["tx_bytes"],
        statistics["rx_bytes"],
        sum(broker["outbuf_cnt"] + broker["waitresp_cnt"] for broker in every),
    )


def _broker(broker: Mapping[str, Any]) -> BrokerMetrics:
    round_trip = broker["rtt"]
    return BrokerMetrics(
        broker["state"] == UP,
        round_trip["avg"] / 1e6,
        round_trip["p99"] / 1e6,
        broker["txerrs"] + broker["rxerrs"] + broker["req_timeouts"],
    )
