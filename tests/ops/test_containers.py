"""What the trial of the containers computes; the trial itself is `ops/try-compose`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from ops.containers import composed, kafka_container
from ops.containers.composed import SERVICES, wait
from ops.containers.process import TrialError, run
from pipeline.broker.settings import container_environment

ROOT = Path(__file__).parents[2]


def test_the_stand_in_has_the_settings_of_the_embedded_broker() -> None:
    found = kafka_container.settings(container_environment("kafka", 19092))
    assert found["advertised.listeners"] == "PLAINTEXT://kafka:19092"
    assert found["transaction.state.log.min.isr"] == "1"
    assert not any(name != name.lower() for name in found)


def test_all_services_are_tried_but_grafana() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert {*SERVICES, "grafana"} == compose["services"].keys()


def test_a_program_that_fails_is_shown() -> None:
    assert run([sys.executable, "-c", "print(1)"]) == "1\n"
    with pytest.raises(TrialError, match=r"ended with 3:\nwhy"):
        run([sys.executable, "-c", "import sys; print('why'); sys.exit(3)"])
    with pytest.raises(TrialError, match=r"took more than 0\.2 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)


def test_what_does_not_come_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed, "TIMEOUT", 0.0)
    assert wait(lambda: True, "it") < 1
    with pytest.raises(TrialError, match="it: not after 0 s"):
        wait(lambda: False, "it", interval=0.0)
