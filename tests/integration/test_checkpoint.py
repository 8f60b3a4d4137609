"""`forks checkpoint`: what the group continues from, to a file and back."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from safetensors.numpy import load, load_file, save
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.errors import DataError, ForksError, StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.snapshot import pack
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.records.outputs import Outcome, Prediction
from pipeline.tools.checkpoint import Group
from pipeline.tools.checkpoint.installing import Replacement, install
from tests.integration.harness import Pipeline, interactions_of, invented_events, labels_of, until


def checkpoint(pipeline: Pipeline, *arguments: str) -> Result:
    kafka = pipeline.kafka
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    return CliRunner().invoke(app, ["checkpoint", *arguments, *where])


def refused(result: Result, kind: type[ForksError] = StateError) -> str:
    assert isinstance(result.exception, kind), result.output
    return str(result.exception)


def outcomes_learned(pipeline: Pipeline, count: int) -> bytes:
    """The snapshot of the first outcomes, outcomes_learned by hand."""
    model = ModelFactory(Config()).new_model()
    for record in pipeline.read_json(pipeline.topics.outcomes)[:count]:
        model.learn_one(msgspec.convert(record, Outcome))
    return pack(model)


def assert_predictions_follow_from_outcomes(pipeline: Pipeline) -> None:
    model = ModelFactory(Config()).new_model()
    outcomes = iter([msgspec.convert(o, Outcome) for o in pipeline.read_json(pipeline.topics.outcomes)])
    for record in pipeline.read_json(pipeline.topics.predictions):
        prediction = msgspec.convert(record, Prediction)
        interaction = msgspec.convert(record | {"video_duration": 0}, KuaiRecInteraction)
        while model.outcomes_learned < prediction.model_version:
            model.learn_one(next(outcomes))
        assert model.predict(interaction).score == prediction.score


@pytest.mark.slow
def test_after_the_import_of_an_older_snapshot_no_prediction_comes_out_otherwise(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    outcomes, file = pipeline.topics.outcomes, tmp_path / "model.safetensors"
    events = invented_events(tmp_path, 1_500)
    half, older = len(events) // 2, len(events) // 3
    file.write_bytes(pack(ModelFactory(Config()).new_model()))
    pipeline.produce_events(events[:half])
    with pipeline.worker(None) as process, pipeline.follow(outcomes) as follower:
        until(partial(follower.reached, half), "the first half", process)
        refusal = refused(checkpoint(pipeline, "import", str(file), "--partition", "0"))
        assert "stop every worker first" in refusal

    exported = checkpoint(pipeline, "export", "--partition", "0", "--out", str(file), "--json")
    done = json.loads(exported.stdout)
    assert file.read_bytes() == outcomes_learned(pipeline, half)
    assert (done["outcomes"], done["sha256"]) == (half, hashlib.sha256(file.read_bytes()).hexdigest())
    assert "learner.weights" in load_file(file)
    figures = json.loads(checkpoint(pipeline, "show", "--partition", "0", "--json").stdout)
    assert (figures["outcomes"], figures["updates"], figures["preset"]) == (half, half, "practical")

    file.write_bytes(outcomes_learned(pipeline, older))
    imported = checkpoint(pipeline, "import", str(file), "--partition", "0")
    assert f"{half - older:,} since are learned" in imported.stdout, imported.exception
    [listed] = json.loads(checkpoint(pipeline, "list", "--json").stdout)
    assert (listed["outcomes"], listed["snapshot"]["outcomes"]) == (half, older)
    assert (listed["previous"]["outcomes"], listed["previous"]["damage"]) == (half, None)
    assert listed["snapshot"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert listed["snapshot"]["damage"] is None

    pipeline.produce_events(events[half:])
    pipeline.run_until({outcomes: len(events)}, instance=None)
    assert_predictions_follow_from_outcomes(pipeline)
    [listed] = json.loads(checkpoint(pipeline, "list", "--json").stdout)
    whole = hashlib.sha256(outcomes_learned(pipeline, len(events))).hexdigest()
    assert listed["snapshot"]["sha256"] == whole


def test_a_snapshot_of_another_log_is_refused_and_changes_nothing(
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
    empty = pack(ModelFactory(Config()).new_model())
    for wrong, message in (
        (save(tensors), f"not the model of this log's first {len(events)} outcomes"),
        (empty.replace(b'"folded":0', b'"folded":9'), "not the model of this log's first 9 outcomes"),
    ):
        file.write_bytes(wrong)
        assert message in refused(checkpoint(pipeline, "import", str(file), "--partition", "0"))
    file.write_bytes(data[:-1])
    assert "damaged" in refused(checkpoint(pipeline, "import", str(file), "--partition", "0"), DataError)
    file.write_bytes(data)
    monkeypatch.setenv("FORKS_LEARNER__BUDGET", "50")
    assert "learner.budget is '50'" in refused(checkpoint(pipeline, "import", str(file), "--partition", "0"))
    monkeypatch.delenv("FORKS_LEARNER__BUDGET")
    assert checkpoint(pipeline, "list").stdout.splitlines()[-1] == before


def test_what_is_installed_by_one_is_kept_from_others(
    bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)}, instance=None)
    file = str(tmp_path / "model.safetensors")
    checkpoint(pipeline, "export", "--partition", "0", "--out", file)
    data = Path(file).read_bytes()
    with Group(Config(kafka=pipeline.kafka)) as first:
        with first.sole_member() as member:
            metadata = member.consumer_group_metadata()
            assert "stop every worker first" in refused(
                checkpoint(pipeline, "import", file, "--partition", "0")
            )
        committed_state = first.committed_state(0)
        assert committed_state is not None
        replacement = Replacement(committed_state, committed_state.state, data, len(events), 0)
        assert not checkpoint(pipeline, "import", file, "--partition", "0").exception
        with pytest.raises(StateError, match="a worker has gone on meanwhile"):
            install(first, [replacement])

        committed_state = first.committed_state(0)
        assert committed_state is not None
        outdated = SimpleNamespace(consumer_group_metadata=lambda: metadata)
        monkeypatch.setattr(first, "sole_member", lambda: nullcontext(outdated))
        with pytest.raises(StateError, match="a worker has joined meanwhile"):
            install(first, [replacement._replace(committed_state=committed_state)])
        assert first.committed_state(0) == committed_state
