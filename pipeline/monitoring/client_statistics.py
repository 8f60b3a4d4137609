"""The part of librdkafka's statistics that tells whether brokers and queues are in order.

https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md describes all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

UP: Final = "UP"
"""The state of a broker that requests can be sent to."""


class BrokerFigures(NamedTuple):
    """A client's connection to one broker."""

    up: bool
    mean_round_trip: float
    """Seconds, over the last interval, as the next."""
    p99_round_trip: float
    errors: int
    """Requests that failed or were not answered in time."""


class ClientFigures(NamedTuple):
    """One client of librdkafka at its last statistics."""

    brokers: Mapping[int, BrokerFigures]
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
    """Keeps the figures of a client's last statistics; to be given to it as ``stats_cb``.

    Attributes
    ----------
    figures
        None until the first statistics came. Replaced, never changed.
    """

    def __init__(self) -> None:
        self.figures: ClientFigures | None = None

    def __call__(self, text: str) -> None:
        """Take the statistics, which are JSON."""
        self.figures = client_figures(orjson.loads(text))


def client_figures(statistics: Mapping[str, Any]) -> ClientFigures:
    """Return the figures of a client's statistics.

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
    return ClientFigures(
        {broker["nodeid"]: _broker(broker) for broker in brokers},
        messages,
        size,
        statistics["tx_bytes"],
        statistics["rx_bytes"],
        sum(broker["outbuf_cnt"] + broker["waitresp_cnt"] for broker in every),
    )


def _broker(broker: Mapping[str, Any]) -> BrokerFigures:
    round_trip = broker["rtt"]
    return BrokerFigures(
        broker["state"] == UP,
        round_trip["avg"] / 1e6,
        round_trip["p99"] / 1e6,
        broker["txerrs"] + broker["rxerrs"] + broker["req_timeouts"],
    )
