"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.chaos.network import Network
from tests.chaos.schedule import BROKERS
from tests.support.cluster import Cluster, running_cluster
from tests.support.examples import ALL

# Machines differ; time is never asserted.
settings.register_profile(
    "untimed", max_examples=ALL, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# Chosen with --hypothesis-profile, which comes after this.
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=ALL // 5)
settings.load_profile("untimed")

# Several processes share the cores: threads of BLAS would take time to wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

URGENT = ("chaos", "slow", "kafka")
"""Markers, first what takes longest."""


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes of tests: a shell that starts the run in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, let the long ones begin first."""
    if hasattr(config, "workerinput"):
        items.sort(key=urgency)


def pytest_collection_finish() -> None:
    """Keep the collector away from what was imported and collected, which stays until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def urgency(item: pytest.Item) -> int:
    """Tell when a test is to begin: small numbers first."""
    return next(
        (position for position, mark in enumerate(URGENT) if item.get_closest_marker(mark)), len(URGENT)
    )


@pytest.fixture(autouse=True)
def same_logs_afterwards() -> Iterator[None]:
    """Restore the configuration of logs, which commands change for their whole process."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def network() -> Iterator[Network]:
    """The proxies between two workers and the brokers of the cluster."""
    with Network(2, BROKERS) as running:
        yield running


@pytest.fixture(scope="session")
def cluster(network: Network) -> Iterator[Cluster]:
    """A cluster of brokers, for tests of the xdist group `cluster`, who leave all brokers running."""
    with running_cluster(proxied=network.advertised) as running:
        network.lead_to(running)
        yield running


@pytest.fixture(scope="session")
def kuairec() -> Path:
    """The folder of real KuaiRec rows."""
    return data("kuairec")


@pytest.fixture(scope="session")
def kuairand() -> Path:
    """The folder of real KuaiRand rows."""
    return data("kuairand")


@pytest.fixture(scope="session")
def graph_files() -> Path:
    """The folder of real graphs."""
    return data("graphs")


def data(name: str) -> Path:
    """Return a folder of data that is not part of the project, or skip the test."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("FORKS_TEST_DATA", beside)) / name
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}; FORKS_TEST_DATA may name the one above it")
    return folder
