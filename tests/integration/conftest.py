"""What the tests that need a real broker share."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from pipeline.broker.available import available_broker
from pipeline.broker.launch import free_ports


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The address of one broker for all tests."""
    with available_broker() as address:
        yield address


@pytest.fixture
def topic_prefix() -> str:
    """A prefix by which a test's topics, groups and transactions are its own."""
    return f"test-{uuid4().hex[:8]}-"


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on."""
    [port] = free_ports(1)
    return port
