"""Mutated snapshots through the reading of chunks and the restore of a model, in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from random import Random
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors.numpy import load, save

from pipeline.errors import StateError
from pipeline.model.model import Model
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import pack, unpack
from pipeline.records.outputs import Outcome
from pipeline.recovery.state_reader import snapshot_bytes
from pipeline.task.state import SnapshotReference
from tests.fuzz.mutations import mutated_bytes, mutated_json, nested_deeply
from tests.fuzz.state import outcomes_of, written_log
from tests.support.builders import CHALLENGERS, new_model
from tests.support.memory_log import snapshot_log

Tensors = dict[str, NDArray[Any]]
NO_CHALLENGERS: Final[Mapping[str, ChallengerSettings]] = MappingProxyType({})


class Subject(NamedTuple):
    """A snapshot, and the settings of its model."""

    data: bytes
    challengers: Mapping[str, ChallengerSettings]

    def new_model(self) -> Model:
        """Return a model of the same settings."""
        return new_model(challengers=self.challengers)


def _subject(events: int, challengers: Mapping[str, ChallengerSettings]) -> Subject:
    model = new_model(challengers=challengers)
    model.learn_many(outcomes_of(written_log())[:events])
    return Subject(pack(model), challengers)


@cache
def subjects() -> list[Subject]:
    """Return snapshots in both stages of the learner, with challengers and without."""
    kinds = (NO_CHALLENGERS, CHALLENGERS)
    return [_subject(events, challengers) for events in (0, 3, 60) for challengers in kinds]


@cache
def later_outcomes() -> list[Outcome]:
    """Return what a restored model learns: enough to change its feature map."""
    return outcomes_of(written_log())[:12]


def restore(data: bytes, subject: Subject) -> str:
    """Restore a model from a snapshot as a worker would, and use it; return what came of it."""
    reference = SnapshotReference([0], sha256(data).hexdigest(), 0, 0, 0)
    log, model = snapshot_log({0: data}), subject.new_model()
    try:
        unpack(snapshot_bytes(log, reference, model), model)
    except StateError:
        return "refused"
    first = model.outcomes_learned
    try:
        with np.errstate(all="ignore"):
            model.learn_many(
                [replace(event, sequence=first + row) for row, event in enumerate(later_outcomes())]
            )
    except ValueError:  # of a matrix that is none of a learner, which a restore refuses when it learns
        return "restored, refused at the next outcomes"
    if len(pack(model)) > 2 * len(subject.data) + 10_000:
        raise AssertionError("the restored model is larger than the settings allow")
    return "restored"


def fuzz(rng: Random) -> str:
    """Restore from a snapshot that is changed at random."""
    subject = rng.choice(subjects())
    change = rng.choice([_bytes, _bytes, _header, _header, _tensors, _tensors, _tensors, _json])
    return restore(change(rng, subject.data), subject)


def _bytes(rng: Random, data: bytes) -> bytes:
    return mutated_bytes(rng, data)


def _header(rng: Random, data: bytes) -> bytes:
    """Change the header, as JSON or as bytes, most often with its right length."""
    length = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + length], data[8 + length :]
    match rng.randrange(5):
        case 0:
            header = mutated_bytes(rng, header)
        case 1:
            header = nested_deeply(rng, header)
        case _:
            header = json.dumps(mutated_json(rng, json.loads(header))).encode()
    length = rng.choice([0, 2**63 - 1, 2**64 - 1, length]) if rng.random() < 0.1 else len(header)
    return length.to_bytes(8, "little") + header + rest


def _tensors(rng: Random, data: bytes) -> bytes:
    """Change tensors: their shape, their type, single numbers; or leave one out, or add one."""
    tensors = _loaded(data)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice([*tensors])
        _change_tensor(rng, tensors, name)
    return save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})


def _change_tensor(rng: Random, tensors: Tensors, name: str) -> None:
    tensor = tensors[name]
    match rng.randrange(8):
        case 0:
            del tensors[name]
            tensors.setdefault("learner.other", np.zeros(3))
        case 1:
            tensors[rng.choice(["learner.other", "other", "users.totals"])] = tensor.copy()
        case 2:
            with np.errstate(all="ignore"):  # what does not fit is a case as well
                tensors[name] = tensor.astype(rng.choice(["f4", "f8", "i8", "u1", "i4", "?"]))
        case 3:
            tensors[name] = tensor.reshape(-1)[: rng.randrange(tensor.size + 1)]
        case 4:
            tensors[name] = np.concatenate([tensor] * rng.choice([2, 3, 50])) if tensor.ndim else tensor
        case 5:
            tensors[name] = tensor.T.copy() if tensor.ndim == 2 else tensor[None]
        case _ if tensor.size:
            changed = tensor.copy()
            with np.errstate(all="ignore"):
                changed.reshape(-1)[rng.randrange(tensor.size)] = _number(rng, tensor.dtype)
            tensors[name] = changed


def _number(rng: Random, dtype: np.dtype[Any]) -> float | int:
    if dtype.kind == "f":
        return rng.choice([float("nan"), float("inf"), -1.0, 0.0, 1e308, -1e308, 5e-324, 1e15])
    if dtype.kind == "b":
        return rng.randrange(2)
    limits = np.iinfo(dtype)
    return rng.choice([limits.min, limits.max, 0, 1, limits.max // 2])


def _json(rng: Random, data: bytes) -> bytes:
    """Change a tensor that holds JSON."""
    tensors = _loaded(data)
    name = rng.choice(["plain", "plain", "users.ids", "videos.ids"])
    text = tensors[name].tobytes()
    if rng.random() < 0.1 and name == "plain":
        text = nested_deeply(rng, text)
    else:
        text = json.dumps(mutated_json(rng, json.loads(text))).encode()
    tensors[name] = np.frombuffer(text, dtype=np.uint8)
    return save(tensors)


def _loaded(data: bytes) -> Tensors:
    """Return the tensors by name in the order of names: that of `load` differs from call to call."""
    return dict(sorted(load(data).items()))
