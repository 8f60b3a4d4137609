"""A sender that waits for a broker."""

from __future__ import annotations

import socket

import pytest
from structlog.testing import capture_logs

from pipeline.config.settings import Kafka
from pipeline.errors import BrokerError
from pipeline.sources import sender
from pipeline.sources.sender import Sender


def test_a_sender_says_that_it_waits_before_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "REPORT_INTERVAL", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, capture_logs() as logged:
        host, port = silent.getsockname()
        sending = Sender(Kafka(bootstrap=f"{host}:{port}"), ack_timeout=1.0)
        sending.send("plays", b"key", b"value", 1)
        with pytest.raises(BrokerError, match="nothing was acknowledged for 1 s"):
            sending.flush()
    waited = [line for line in logged if "waiting" in line["event"]]
    assert len(waited) in {4, 5}
    assert waited[0]["patience_s"] == 1
