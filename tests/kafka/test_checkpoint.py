"""`forks checkpoint`: what the group continues from, to a file and back."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import msgspec
import pytest
from safetensors.numpy import load, load_file, save
from typer.testing import CliRunner, Result

from pipeline.blueprint import Blueprint
from pipeline.cli import app
from pipeline.config import Config
from pipeline.errors import StateError
from pipeline.records import Interaction, Outcome, Prediction
from pipeline.snapshot import pack
from tests.kafka.harness import Pipeline, interactions_of, invented_events, labels_of, until


def checkpoint(pipeline: Pipeline, *arguments: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, ["checkpoint", *arguments, *where])


def refused(result: Result) -> str:
    assert isinstance(result.exception, StateError), result.output
    return str(result.exception)


def assert_predictions_follow_from_outcomes(pipeline: Pipeline) -> bytes:
    """Derive every score again from the outcomes; returns the fold of them all as a snapshot."""
    model = Blueprint(Config()).new_model()
    folds = iter([msgspec.convert(o, Outcome) for o in pipeline.read_json(pipeline.topics.outcomes)])
    for record in pipeline.read_json(pipeline.topics.predictions):
        prediction = msgspec.convert(record, Prediction)
        shown = msgspec.convert(record | {"video_duration": 0}, Interaction)
        while model.folded < prediction.model_version:
            model.fold(next(folds))
        assert model.judge(shown).score == prediction.score
    for outcome in folds:
        model.fold(outcome)
    return pack(model)


def test_an_older_snapshot_is_exported_and_imported_and_no_prediction_comes_out_otherwise(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    outcomes, file = pipeline.topics.outcomes, str(tmp_path / "old.safetensors")
    events = invented_events(tmp_path, 1_500)
    third = len(events) // 3
    pipeline.produce_events(events[:third])
    pipeline.run_until({outcomes: third}, instance=None)  # a named member would stay for a while

    exported = checkpoint(pipeline, "export", "--partition", "0", "--out", file, "--json")
    done = json.loads(exported.stdout)
    assert done["sha256"] == hashlib.sha256(Path(file).read_bytes()).hexdigest()
    assert done["outcomes"] == third
    assert "learner.weights" in load_file(file)
    shown = json.loads(checkpoint(pipeline, "show", "--partition", "0", "--json").stdout)
    assert (shown["outcomes"], shown["updates"], shown["preset"]) == (third, third, "practical")

    pipeline.produce_events(events[third : 2 * third])
    with pipeline.worker(None) as process, pipeline.follow(outcomes) as follower:
        until(partial(follower.reached, 2 * third), "the second third", process)
        assert "stop every worker first" in refused(checkpoint(pipeline, "import", file, "--partition", "0"))

    imported = checkpoint(pipeline, "import", file, "--partition", "0")
    assert f"{third:,} since are folded" in imported.stdout, imported.exception
    [listed] = json.loads(checkpoint(pipeline, "list", "--json").stdout)
    assert listed["outcomes"] == 2 * third
    assert listed["snapshot"]["outcomes"] == third
    assert listed["snapshot"]["sha256"] == done["sha256"]
    assert listed["snapshot"]["damage"] is None

    pipeline.produce_events(events[2 * third :])
    pipeline.run_until({outcomes: len(events)}, instance=None)
    whole = assert_predictions_follow_from_outcomes(pipeline)
    [listed] = json.loads(checkpoint(pipeline, "list", "--json").stdout)
    assert listed["snapshot"]["sha256"] == hashlib.sha256(whole).hexdigest()


def test_what_is_no_fold_of_this_log_is_refused_and_changes_nothing(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    assert "no snapshot of partition 0 yet" in refused(
        checkpoint(pipeline, "export", "--partition", "0", "--out", str(tmp_path / "none"))
    )
    pipeline.produce(interactions_of(pipeline.topics, events))
    pipeline.produce(labels_of(pipeline.topics, events))
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    file = tmp_path / "model.safetensors"
    checkpoint(pipeline, "export", "--partition", "0", "--out", str(file))
    before = checkpoint(pipeline, "list").stdout.splitlines()[-1]

    data = file.read_bytes()
    tensors = load(data)
    tensors["learner.weights"] = tensors["learner.weights"] * 2.0
    empty = pack(Blueprint(Config()).new_model())
    for wrong, said in (
        (data[:-1], "damaged"),
        (save(tensors), f"not the fold of this log's first {len(events)} outcomes"),
        (empty.replace(b'"folded":0', b'"folded":9'), "not the fold of this log's first 9 outcomes"),
    ):
        file.write_bytes(wrong)
        assert said in refused(checkpoint(pipeline, "import", str(file), "--partition", "0"))
    file.write_bytes(data)
    monkeypatch.setenv("FORKS_LEARNER__BUDGET", "50")
    assert "learner.budget is '50'" in refused(checkpoint(pipeline, "import", str(file), "--partition", "0"))
    monkeypatch.delenv("FORKS_LEARNER__BUDGET")
    assert checkpoint(pipeline, "list").stdout.splitlines()[-1] == before
