"""Apache Kafka in Docker, with the settings of the embedded broker; needs the extra `docker`."""

from __future__ import annotations

from typing import Self

from testcontainers.core.container import DockerContainer

from pipeline.broker.launch import free_ports
from pipeline.broker.ready import wait_until_ready
from pipeline.broker.settings import VERSION, container_environment
from pipeline.errors import BrokerError


class ApacheKafka(DockerContainer):
    """A container of ``apache/kafka``, ready for clients inside its ``with`` block.

    A broker advertises its address to its clients. The outer port must therefore be known before the
    container starts: it is a free one, and the broker listens on the same port inside the container.

    Attributes
    ----------
    bootstrap : str
        The address of the broker for clients outside the container, ``host:port``.
    """

    def __init__(self) -> None:
        super().__init__(f"apache/kafka:{VERSION}")
        [port] = free_ports(1)
        host = self.get_container_host_ip()
        self.bootstrap = f"{host}:{port}"
        self.with_bind_ports(port, port)
        for name, value in container_environment(host, port).items():
            self.with_env(name, value)

    def start(self) -> Self:
        """Start the container, and return when the broker answers.

        Raises
        ------
        BrokerError
            The broker ended while it was starting, or did not answer in time.
        """
        super().start()
        try:
            wait_until_ready(self.bootstrap, self._check_alive)
        except BaseException:
            self.stop()
            raise
        return self

    def _check_alive(self) -> None:
        container = self.get_wrapped_container()
        container.reload()
        if container.status == "exited":
            log = container.logs(tail=15).decode(errors="replace")
            raise BrokerError(f"Apache Kafka ended while it was starting. The end of its log:\n{log}")
