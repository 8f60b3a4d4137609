"""Golden replays through real workers: each is stopped in the middle and goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.feature_layout import FeatureKind
from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from tests.golden import scenarios
from tests.golden.__main__ import FILE, KUAIREC
from tests.golden.scenarios import Scenario
from tests.integration.harness import Message, Pipeline, Written
from tests.support.forked import run_command

RECORDED = json.loads(FILE.read_text())
AT_ONCE = 20_000
"""Messages that a producer's queue takes."""
OFFSETS = {"prediction_offset", "outcome_offset", "snapshot", "previous"}
"""What a state record says of offsets, which depend on how events fell into transactions."""
OF_THE_MACHINE = {"libraries"}
"""What a state record says of the machine of its worker."""
FROM_INPUTS = (
    "event_id",
    "user_id",
    "video_id",
    "timestamp",
    "model_version",
    "sequence",
    "watch_ratio",
    "status",
)
"""Fields that do not depend on what other partitions have shared, and when."""


def whole(record: Written) -> object:
    return record[:4]


def from_inputs(record: Written) -> object:
    value = json.loads(record.value or b"")
    return record.partition, record.key, [value.get(name) for name in FROM_INPUTS]


def replayed(name: str, scenario: Scenario, bootstrap: str, prefix: str, folder: Path) -> Pipeline:
    """Run workers over all inputs, the second from where the first was stopped."""
    pipeline = Pipeline(bootstrap, prefix, folder, scenario.partitions)
    pipeline.environment = scenario.environment()
    outcomes = int(RECORDED["core"][name]["outcomes"].split()[0])
    if "labels" in scenario.settings:
        create(
            Admin(Kafka(bootstrap=bootstrap)),
            Topics(prefix, requests_labels=True),
            scenario.partitions,
            1,
        )
    messages = (Message(prefix + each.topic, *each[1:]) for each in scenario.inputs)
    while piece := list(islice(messages, AT_ONCE)):
        pipeline.produce(piece)
    for count in (outcomes // 2, outcomes):
        pipeline.run_until({pipeline.topics.outcomes: count})
    return pipeline


def digest(records: list[Written], view: Callable[[Written], object] = whole) -> str:
    """Number and SHA-256 of records, as they are viewed."""
    found = hashlib.sha256(repr([view(record) for record in records]).encode())
    return f"{len(records)} {found.hexdigest()}"


def last_states(pipeline: Pipeline) -> dict[str, Any]:
    """The last state record of each partition, without offsets and what the machine has."""
    states = {
        record.key: json.loads(record.value or b"")
        for record in pipeline.read(pipeline.topics.checkpoints)
        if record.key is not None and record.key.endswith(b"/state")
    }
    return {
        key.decode(): {name: value for name, value in state.items() if name not in OFFSETS | OF_THE_MACHINE}
        for key, state in sorted(states.items())
    }


def exported(pipeline: Pipeline, number: int) -> bytes:
    """The last snapshot of a partition."""
    file = pipeline.folder / f"snapshot-{number}.safetensors"
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    done = run_command("checkpoint", "export", "--out", str(file), "--partition", str(number), *where)
    assert done.returncode == 0, done.stderr
    return file.read_bytes()


def digests(pipeline: Pipeline) -> dict[str, str]:
    """Digests of all that does not depend on how events fell into transactions."""
    topics = pipeline.topics
    states = json.dumps(last_states(pipeline), sort_keys=True).encode()
    snapshots = [exported(pipeline, number) for number in range(pipeline.partitions)]
    requests = pipeline.read(topics.label_requests) if "FORKS_LABELS" in pipeline.environment else []
    return {
        "predictions": digest(pipeline.read(topics.predictions)),
        "outcomes": digest(pipeline.read(topics.outcomes)),
        "label-requests": digest(requests),
        "dead-letters": digest(pipeline.read(topics.dead_letters), lambda record: record[:3]),
        "last states": hashlib.sha256(states).hexdigest(),
        "last snapshots": hashlib.sha256(b"".join(snapshots)).hexdigest(),
    }


def check(name: str, found: dict[str, str]) -> None:
    """Compare with the recorded digests. `FORKS_RECORD_GOLDEN=1` records them in their place."""
    if os.environ.get("FORKS_RECORD_GOLDEN"):
        recorded = json.loads(FILE.read_text())
        recorded.setdefault("kafka", {})[name] = found
        FILE.write_text(json.dumps(recorded, indent=2) + "\n")
    else:
        assert found == RECORDED["kafka"][name]


@pytest.mark.parametrize("kind", KUAIREC)
def test_the_sample(
    bootstrap: str, topic_prefix: str, tmp_path: Path, kuairec: Path, kind: FeatureKind
) -> None:
    name, scenario = KUAIREC[kind], scenarios.kuairec(kuairec, kind)
    check(name, digests(replayed(name, scenario, bootstrap, topic_prefix, tmp_path)))


def test_categories(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    scenario = scenarios.categories()
    scenario.settings["sharing"] = {"interval": "off"}
    check("categories", digests(replayed("categories", scenario, bootstrap, topic_prefix, tmp_path)))


def test_challengers_and_a_label_policy(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    scenario = scenarios.invented(shared=False)
    check("invented", digests(replayed("invented", scenario, bootstrap, topic_prefix, tmp_path)))


def test_sharing(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """What is learned from other partitions depends on timing; all else is the same."""
    scenario = scenarios.invented(shared=True)
    pipeline = replayed("invented", scenario, bootstrap, topic_prefix, tmp_path)
    topics = pipeline.topics
    found = {
        topic: digest(pipeline.read(topics.prefix + topic), from_inputs)
        for topic in ("predictions", "outcomes")
    }
    assert pipeline.read(topics.shared)
    check("invented, sharing", found)
