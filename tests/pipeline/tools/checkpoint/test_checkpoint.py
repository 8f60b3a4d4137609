"""The contents of a snapshot, and whether it belongs to a log."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from io import StringIO
from types import SimpleNamespace
from typing import cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from safetensors.numpy import load

from pipeline.config.settings import Config
from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome
from pipeline.task.state import SnapshotReference
from pipeline.tools.checkpoint import (
    Checkpoint,
    CommittedState,
    Group,
    belonging,
    contents,
    read_checkpoint,
    render_contents,
    render_list,
)
from pipeline.tools.checkpoint.belonging import verify
from pipeline.tools.checkpoint.contents import nearest_preset
from pipeline.tools.checkpoint.listing import Snapshot
from tests.support.builders import ALL, feed_all, inputs, interaction, label, new_model, new_task, records_of
from tests.support.examples import examples
from tests.support.memory_log import snapshot_log

COUNT = 60
SETTINGS = ModelFactory(Config()).settings(1)


@pytest.fixture(autouse=True, scope="module")
def few_at_once() -> Iterator[None]:
    """Learn outcomes in batches of 7 instead of 1,000."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(belonging, "BATCH", 7)
        yield


def outcomes() -> list[tuple[int, Outcome]]:
    """Outcomes of a stream whose feature map changes, at offsets with gaps."""
    task = new_task()
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(COUNT)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(COUNT)]
    feed_all(task, inputs(interactions, labels))
    return [(10 + 3 * outcome.sequence, outcome) for outcome in records_of(task.advance(ALL)).outcomes]


LOG = outcomes()


def model_after(count: int) -> Model:
    model = new_model()
    for _, outcome in LOG[:count]:
        model.learn_one(outcome)
    return model


@examples(20)
@given(candidate=st.integers(0, COUNT), trusted=st.integers(0, COUNT), before=st.integers(0, COUNT))
def test_a_matching_snapshot_is_verified_and_its_offset_lies_between_known_and_missing_outcomes(
    candidate: int, trusted: int, before: int
) -> None:
    start = max(0, min(candidate, trusted) - before)
    begin = LOG[start][0] if start < COUNT else LOG[-1][0] + 1
    lowest = verify(model_after(candidate), model_after(trusted), LOG[start:], begin)
    assert begin <= lowest
    assert all(offset >= lowest for offset, outcome in LOG if outcome.sequence >= candidate)
    if candidate > trusted:
        assert lowest == LOG[candidate - 1][0] + 1


@examples(20)
@given(candidate=st.integers(1, COUNT), trusted=st.integers(0, COUNT))
def test_a_snapshot_with_one_other_outcome_is_refused(candidate: int, trusted: int) -> None:
    model = model_after(candidate - 1)
    _, last = LOG[candidate - 1]
    model.learn_one(msgspec.structs.replace(last, watch_ratio=0.0 if last.label else 2.0))
    with pytest.raises(StateError, match=f"not the model of this log's first {candidate} outcomes"):
        verify(model, model_after(trusted), LOG, 0)


@examples(20)
@given(data=st.data())
def test_where_an_outcome_is_missing_nothing_is_verified(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, COUNT), min_size=2, max_size=2, unique=True))
    missing = data.draw(st.integers(min(counts), max(counts) - 1))
    rest = [(offset, outcome) for offset, outcome in LOG if outcome.sequence != missing]
    with pytest.raises(StateError, match=f"outcome {missing} is missing from the log"):
        verify(model_after(counts[0]), model_after(counts[1]), rest, 0)


def test_contents_are_those_that_safetensors_alone_finds() -> None:
    data = pack(model_after(COUNT))
    tensors, found = load(data), contents(data, SETTINGS)
    eigenvalues = np.linalg.eigvalsh(tensors["learner.inverse_hessian"])
    assert (found.smallest_eigenvalue, found.largest_eigenvalue) == (eigenvalues[0], eigenvalues[-1])
    assert found.smallest_eigenvalue > 0.0
    assert found.singular_values == np.abs(tensors["learner.eigenvalues"]).tolist()
    assert found.weights.norm == pytest.approx(np.sqrt(np.sum(tensors["learner.weights"] ** 2)))
    assert found.sketch["phi_pp"].shape == list(tensors["learner.phi_pp"].shape)
    assert (found.outcomes, found.updates, found.stage, found.bytes) == (COUNT, COUNT, 2, len(data))
    assert (found.kept, found.map_changes > 0) == ({"users": 3, "videos": 3, "tags": 0}, True)  # at most 3


def test_before_the_budget_is_full_there_is_no_sketch() -> None:
    found = contents(pack(model_after(0)), SETTINGS)
    assert (found.stage, found.sketch, found.singular_values) == (1, {}, [])


def test_damaged_bytes_have_no_contents() -> None:
    data = pack(model_after(COUNT))
    for damaged in (b"", data[:-1], data.replace(b"learner.weights", b"learner.wieghts")):
        with pytest.raises(StateError, match="damaged"):
            contents(damaged, SETTINGS)


def test_the_preset_is_named_with_what_differs() -> None:
    assert nearest_preset(SETTINGS) == ("practical", {})
    paper = Config.model_validate({"learner": {"preset": "paper", "width": 3.5}})
    assert nearest_preset(ModelFactory(paper).settings(1)) == ("paper", {"width": "3.5"})


@pytest.mark.parametrize(
    ("chunks", "size", "damage"),
    [
        ({5: b"one", 6: b"two"}, 6, None),
        ({5: b"one", 6: b"twO"}, 6, "its bytes have another SHA-256"),
        ({5: b"one"}, None, "checkpoints has no record at offset 6 of partition 0"),
    ],
)
def test_a_list_tells_which_snapshots_are_damaged(
    chunks: dict[int, bytes], size: int | None, damage: str | None
) -> None:
    task = new_task()
    task.snapshot_written(SnapshotReference([5, 6], sha256(b"onetwo").hexdigest(), 0, 40, 0))
    committed_state = CommittedState(7, task.state({}))
    group = SimpleNamespace(
        topics=Topics(), log=lambda _: snapshot_log(chunks), committed_state=lambda _: committed_state
    )
    found = read_checkpoint(cast(Group, group), 0)
    assert (found.state_offset, found.snapshot is not None) == (7, True)
    assert found.snapshot is not None
    assert (found.snapshot.outcomes, found.snapshot.bytes, found.snapshot.damage) == (40, size, damage)
    group.committed_state = lambda _: None
    assert read_checkpoint(cast(Group, group), 0) == Checkpoint(0, None, 0, None, None)


def test_the_snapshot_before_is_listed_as_well() -> None:
    task = new_task()
    task.snapshot_written(SnapshotReference([5], sha256(b"one").hexdigest(), 0, 30, 0))
    task.snapshot_written(SnapshotReference([6], "ab" * 32, 1, 40, 0))
    committed_state = CommittedState(7, task.state({}))
    group = SimpleNamespace(
        topics=Topics(),
        log=lambda _: snapshot_log({5: b"one", 6: b"two"}),
        committed_state=lambda _: committed_state,
    )
    found = read_checkpoint(cast(Group, group), 0)
    assert found.snapshot is not None
    assert found.previous is not None
    assert (found.snapshot.outcomes, found.snapshot.damage is None) == (40, False)
    assert (found.previous.outcomes, found.previous.damage is None) == (30, True)


def rendered(renderable: object) -> str:
    console = Console(width=120, file=StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_text_names_what_is_there_and_what_is_not() -> None:
    sound = Snapshot(1_000, [5, 6], 1_234_567, "ab" * 32, 90.0, None)
    damaged = msgspec.structs.replace(sound, bytes=None, age=None, damage="no record at offset 5")
    text = rendered(
        render_list(
            [
                Checkpoint(0, 7, 1_200, sound, None),
                Checkpoint(1, 9, 1_000, damaged, msgspec.structs.replace(sound, outcomes=777)),
                Checkpoint(2, None, 0, None, None),
            ]
        )
    )
    for expected in (
        "777",
        "the one before",
        "1,234,567",
        "1.5 min",
        "ab" * 32,
        "unusable: no record at offset 5",
        "none",
    ):
        assert expected in text
    assert "practical" in rendered(render_contents(0, contents(pack(model_after(COUNT)), SETTINGS)))
