"""The health check of the stand-in for Kafka's image, which `ops/try-compose` makes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

from ops.containers import kafka_topics


def health(port: int) -> int:
    command = [sys.executable, kafka_topics.__file__, "--bootstrap-server", f"127.0.0.1:{port}", "--list"]
    return subprocess.run(command, check=False, capture_output=True).returncode


def test_the_health_check_of_the_stand_in_asks_a_broker(bootstrap: str) -> None:
    assert health(int(bootstrap.rsplit(":", 1)[1])) == 0


def test_the_health_check_of_the_stand_in_fails_without_a_broker(free_port: int) -> None:
    assert health(free_port) != 0
    with socket.create_server(("127.0.0.1", 0)) as server:  # listens, and hangs up

        def hang_up() -> None:
            server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        assert health(server.getsockname()[1]) != 0
        thread.join()
