"""What the tests that need a real broker share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline.broker.launch import free_ports
from tests.integration.shared import shared_broker
from tests.support.apicurio import Apicurio, apicurio

FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before markers select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("kafka")


@pytest.fixture(scope="session")
def bootstrap(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one broker for all tests, also where several processes run them."""
    folder = tmp_path_factory.getbasetemp()
    with shared_broker(folder if worker_id == "master" else folder.parent) as address:
        yield address


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """A real schema registry, for tests of the xdist group `registry`."""
    with apicurio(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def topic_prefix() -> str:
    """A prefix by which a test's topics, groups and transactions are its own."""
    return f"test-{uuid4().hex[:8]}-"


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on."""
    [port] = free_ports(1)
    return port
