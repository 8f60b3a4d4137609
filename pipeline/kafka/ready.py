"""Ask a broker that is starting whether it answers yet."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.kafka.errors import CONNECTION_ERRORS


class Probe:
    """Asks a broker that may not be there yet.

    Parameters
    ----------
    bootstrap
        The broker's address, ``host:port``.
    """

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "reconnect.backoff.max.ms": 200,  # with the default of 10 s a ready broker is noticed late
                "log_level": 0,  # no lines about refused connections: they are expected here
            }
        )

    def answers(self, timeout: float) -> bool:
        """Return whether the broker answers a metadata request with at least one node.

        Parameters
        ----------
        timeout
            Seconds to wait for the answer.

        Returns
        -------
        bool
            False while nothing answers.

        Raises
        ------
        KafkaException
            The broker refuses the request.
        """
        try:
            return bool(self._client.list_topics(timeout=timeout).brokers)
        except KafkaException as error:
            if error.args[0].code() not in CONNECTION_ERRORS:
                raise
            return False
