"""A group that goes on with other libraries than it began with."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.errors import StateError
from pipeline.recovery import libraries
from pipeline.recovery.libraries import libraries_here
from pipeline.task.state import STATE_VERSION, Libraries
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.checkpoint.installing import NewCheckpoint, write_checkpoints
from pipeline.tools.report import summarize
from tests.integration.harness import TIMEOUT, Message, Pipeline, invented_events


def forks(pipeline: Pipeline, *command: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, [*command, *where])


def state_check(pipeline: Pipeline) -> dict[str, str]:
    """What the doctor finds in the group's state."""
    checks = json.loads(forks(pipeline, "doctor", "--json").stdout)["checks"]
    [check] = [each for each in checks if each["name"] == "state"]
    return {name: check[name] for name in ("status", "found")}


def write_states_again(pipeline: Pipeline, **changes: object) -> None:
    """Write the committed state records again, as a process with these libraries or of this version."""
    with Group(Config(kafka=pipeline.kafka)) as group:
        states = [each.state for each in group.all_committed_states()]
        checkpoints = [NewCheckpoint(msgspec.structs.replace(each, **changes), None) for each in states]
        write_checkpoints(group, checkpoints, lambda: True)


def test_a_worker_warns_once_and_an_audit_tells_what_was_computed_elsewhere(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    assert state_check(pipeline) == {"status": "skipped", "found": "the group has committed nothing yet"}
    events = invented_events(tmp_path, 600)
    pipeline.produce_events(events[:400])
    pipeline.run_until({pipeline.topics.outcomes: 400}, instance=None)
    here = libraries_here()
    assert state_check(pipeline) == {"status": "ok", "found": "workers can go on from it in 2 partitions"}

    other = {**here, "numba": "0.1"}
    with monkeypatch.context() as other_process:
        other_process.setattr(libraries, "libraries_here", lambda: other)
        write_states_again(pipeline, libraries=Libraries(other))
    made_so_far = Counter(each.partition for each in pipeline.read(pipeline.topics.predictions))
    assert state_check(pipeline) == {
        "status": "warning",
        "found": f"it was written with numba 0.1 (here {here['numba']})",
    }
    pipeline.produce_events(events[400:])
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    log = pipeline.log_of(None).read_text()
    assert len(re.findall("libraries differ from those of the outputs so far", log)) == 1
    assert f"numba 0.1 (here {here['numba']})" in log

    clean = forks(pipeline, "audit")
    assert clean.exit_code == 0, clean.output
    assert "were made with" not in clean.stdout
    [stray, *_] = pipeline.read(pipeline.topics.outcomes)
    pipeline.produce([Message(pipeline.topics.outcomes, stray.key, stray.value, stray.timestamp)])
    audited = forks(pipeline, "audit")
    assert audited.exit_code == 1, audited.output
    named = re.findall(r"predictions 0 to (\d+) of partition (\d) were made with (.*?):", audited.stdout)
    last = made_so_far[stray.partition] - 1
    assert named == [(str(last), str(stray.partition), f"numba 0.1 (here {here['numba']})")]
    assert state_check(pipeline)["status"] == "ok"


def test_a_state_of_a_version_to_come_is_refused_by_all_that_read_it(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 200)
    pipeline.produce_events(events[:100])
    pipeline.run_until({pipeline.topics.outcomes: 100}, instance=None)
    write_states_again(pipeline, version=STATE_VERSION + 1)
    said = f"the state record of partition 0 has version {STATE_VERSION + 1}"
    before = pipeline.read(pipeline.topics.checkpoints)
    pipeline.produce_events(events[100:])
    worker = pipeline.start_worker(None)
    assert worker.wait(TIMEOUT) == 5
    assert (
        f"{said}, this program reads version {STATE_VERSION}. A newer version"
        in pipeline.log_of(None).read_text()
    )
    for command in (["rebuild"], ["checkpoint", "list"], ["checkpoint", "recover"], ["checkpoint", "sign"]):
        found = forks(pipeline, *command).exception
        assert isinstance(found, StateError)
        assert said in str(found)
    with pytest.raises(StateError, match=said):
        summarize(pipeline.kafka)
    audited = forks(pipeline, "audit")
    assert audited.exit_code == 1
    assert said in audited.stdout
    assert state_check(pipeline)["status"] == "failed"
    assert said in state_check(pipeline)["found"]
    assert pipeline.read(pipeline.topics.checkpoints) == before
