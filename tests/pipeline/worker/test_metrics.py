from __future__ import annotations

import re
import socket
from types import SimpleNamespace
from typing import cast
from urllib.request import urlopen

import psutil
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pipeline.broker.launch import free_ports
from pipeline.config.tree import Config, Features, Join, Metrics, Worker
from pipeline.errors import ConfigError
from pipeline.model.comparison import LearnerMetrics
from pipeline.worker.metrics import (
    COMPARISON_COUNTERS,
    INPUT_GAUGES,
    INPUTS,
    PARTITION_GAUGES,
    TABLE_GAUGES,
    Gauges,
    InputFigures,
    PartitionFigures,
    TableFigures,
    serve_metrics,
)
from pipeline.worker.source import ConsumerSource

CONFIG = Config(
    join=Join(max_pending=11, max_closed=12, early_bytes=13),
    features=Features(max_entities=14),
    worker=Worker(buffer=2**20, dead_letters=15),
)


def free_address() -> str:
    [port] = free_ports(1)
    return f"127.0.0.1:{port}"


def test_every_figure_has_a_gauge() -> None:
    assert PartitionFigures._fields == (*INPUTS, *PARTITION_GAUGES, "entities", "compared", "tables")
    assert TableFigures._fields == tuple(TABLE_GAUGES)
    assert LearnerMetrics._fields == tuple(COMPARISON_COUNTERS)
    assert InputFigures._fields == tuple(INPUT_GAUGES)


def test_a_scrape_finds_the_limits_and_the_process_before_there_is_a_partition() -> None:
    address = free_address()
    with (
        serve_metrics(Gauges(CONFIG), address),
        urlopen(f"http://{address}/metrics", timeout=10.0) as response,
    ):
        text = response.read().decode()
    found = dict(re.findall(r"^(forks_\w+) (.*)$", text, flags=re.MULTILINE))
    assert {name: float(value) for name, value in found.items()} == {
        "forks_buffer_limit_bytes": 2**20,
        "forks_pending_predictions_limit": 11,
        "forks_closed_events_limit": 12,
        "forks_early_label_limit_bytes": 13,
        "forks_entities_limit": 14,
        "forks_dead_letters_per_minute_limit": 15,
    }
    assert "# TYPE forks_pending_predictions gauge" in text
    assert "process_resident_memory_bytes" in text


def test_an_address_of_ipv6_answers_scrapes() -> None:
    with socket.socket(socket.AF_INET6) as free:
        try:
            free.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = free.getsockname()[1]
    address = f"[::1]:{port}"
    settings = Metrics(address=address)
    with (
        serve_metrics(Gauges(CONFIG), settings.address),
        urlopen(f"http://{address}/metrics", timeout=10.0) as response,
    ):
        assert "forks_entities_limit 14.0" in response.read().decode()


def test_a_host_that_nobody_knows_is_a_wrong_setting() -> None:
    with (
        pytest.raises(ConfigError, match=r"^metrics\.address: nowhere\.invalid:9100 cannot be listened on"),
        serve_metrics(Gauges(CONFIG), "nowhere.invalid:9100"),
    ):
        pass


def test_an_address_is_free_again_afterwards_and_in_use_meanwhile() -> None:
    address, gauges = free_address(), Gauges(CONFIG)
    for _ in range(2):
        with serve_metrics(gauges, address):
            pass
    with (
        serve_metrics(gauges, address),
        pytest.raises(ConfigError, match=rf"^metrics\.address: {address} cannot be listened on: .*in use"),
        serve_metrics(gauges, address),
    ):
        pass


def listening() -> set[str]:
    """The addresses at which this process takes connections."""
    connections = psutil.Process().net_connections("tcp")
    return {f"{at.laddr.ip}:{at.laddr.port}" for at in connections if at.status == psutil.CONN_LISTEN}


def test_without_an_address_nothing_is_served() -> None:
    before, address = listening(), free_address()
    with serve_metrics(Gauges(CONFIG), address):
        assert listening() == before | {address}
    with serve_metrics(Gauges(CONFIG), None):
        assert listening() == before


def test_the_schema_registry_has_figures_where_an_input_needs_one() -> None:
    gauges = Gauges(CONFIG)
    collector = cast(CollectorRegistry, gauges)
    lookup = SimpleNamespace(away=True, found=3, unknown=1, failed=2)
    source = cast(ConsumerSource, SimpleNamespace(lookup=None))
    gauges.update([], source)
    assert "forks_registry" not in generate_latest(collector).decode()
    gauges = Gauges(CONFIG)
    gauges.update([], cast(ConsumerSource, SimpleNamespace(lookup=lookup)))
    lines = generate_latest(cast(CollectorRegistry, gauges)).decode().splitlines()
    assert [line for line in lines if line.startswith("forks_registry")] == [
        "forks_registry_away 1.0",
        'forks_registry_lookups_total{answer="found"} 3.0',
        'forks_registry_lookups_total{answer="unknown"} 1.0',
        'forks_registry_lookups_total{answer="failed"} 2.0',
    ]


def test_challengers_have_counters_beside_the_champion() -> None:
    gauges, inputs = Gauges(CONFIG), InputFigures(0, 0, False)
    learner_metrics = {"champion": LearnerMetrics(10, 3, 5.5), "linear": LearnerMetrics(10, 4, None)}
    figures = PartitionFigures._make(
        [
            inputs,
            inputs,
            *(0 for _ in PARTITION_GAUGES),
            {"users": 4},
            learner_metrics,
            {"items": TableFigures(5, 1, 7, 2, 0)},
        ]
    )
    gauges.publish({7: figures})
    lines = generate_latest(cast(CollectorRegistry, gauges)).decode().splitlines()
    assert sorted(line for line in lines if line.startswith("forks_compared_")) == [
        'forks_compared_events_total{learner="champion",partition="7"} 10.0',
        'forks_compared_events_total{learner="linear",partition="7"} 10.0',
        'forks_compared_log_loss_total{learner="champion",partition="7"} 5.5',
        'forks_compared_mistakes_total{learner="champion",partition="7"} 3.0',
        'forks_compared_mistakes_total{learner="linear",partition="7"} 4.0',
    ]
