"""Change bytes and JSON at random."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, Final

EXTREMES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    10**6,
    2**31,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    10**18,
    10**30,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    "",
    "x",
    "0" * 64,
    "3",
    "\ud7ff\u0000",
    [],
    {},
    [0],
    [[]],
    {"": 0},
)
"""Values that take the place of others."""


def mutated_bytes(rng: Random, data: bytes) -> bytes:
    """Return bytes with one to three changes: flips, cuts, repetitions."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed)) if changed else 0
        end = at + rng.randint(1, 16)
        match rng.randrange(6):
            case 0 if changed:
                changed[at] ^= 1 << rng.randrange(8)
            case 1 if changed:
                changed[at] = rng.randrange(256)
            case 2:
                del changed[at:]
            case 3:
                del changed[at:end]
            case 4:
                changed[at:at] = changed[at:end]
            case _:
                changed += rng.randbytes(rng.randint(1, 16))
    return bytes(changed)


def nested_deeply(rng: Random, text: bytes) -> bytes:
    """Return JSON with a list that is nested more deeply than decoders go, often as a member of its own."""
    depth = rng.choice([500, 1_100, 20_000])
    inner = b"[" * depth + b"]" * rng.choice([0, depth])
    if rng.random() < 0.5:
        return text[:1] + b'"x":' + inner + b"," + text[1:]
    at = rng.choice([n for n, byte in enumerate(text) if byte in b":,["]) + 1
    return text[:at] + inner + text[at:]


def mutated_json(rng: Random, value: Any) -> Any:
    """Return a copy of a JSON value with one to three changes at random places."""
    whole = [deepcopy(value)]
    for _ in range(rng.randint(1, 3)):
        parents = list(_parents(whole))
        parent = rng.choice(parents[1:] or parents) if rng.random() < 0.9 else rng.choice(parents)
        _change(rng, parent)
    return whole[0]


def _parents(value: Any) -> list[Any]:
    """Return all lists and objects that hold something."""
    if not isinstance(value, list | dict) or not value:
        return []
    children = value.values() if isinstance(value, dict) else value
    return [value, *(parent for child in children for parent in _parents(child))]


def _change(rng: Random, parent: Any) -> None:
    key = rng.choice([*parent]) if isinstance(parent, dict) else rng.randrange(len(parent))
    change: Callable[[], object] = rng.choice(
        [
            lambda: parent.__setitem__(key, deepcopy(rng.choice(EXTREMES))),
            lambda: parent.__setitem__(key, deepcopy(rng.choice(EXTREMES))),
            lambda: parent.__setitem__(key, _nudged(rng, parent[key])),
            lambda: parent.__setitem__(key, _nudged(rng, parent[key])),
            lambda: _delete(parent, key),
            lambda: _double(rng, parent, key),
            lambda: parent.__setitem__(key, _nested(parent[key], rng.choice([1, 3, 40]))),
        ]
    )
    change()


def _nudged(rng: Random, value: Any) -> Any:
    """Return a value that is close, as a careful forger would choose it."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + rng.choice([-2, -1, 1, 2, 10, 1_000])
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + rng.choice("0aZ=[\u00e9") + value[at + 1 :]
    return value


def _delete(parent: Any, key: Any) -> None:
    if len(parent) > 1 or isinstance(parent, dict):
        del parent[key]


def _double(rng: Random, parent: Any, key: Any) -> None:
    """Add a member again: to a list many times, to an object under another name."""
    if isinstance(parent, list):
        small = len(parent) < 50 and not isinstance(parent[key], list | dict)  # else sizes multiply
        parent.extend([deepcopy(parent[key])] * rng.choice([1, 2, 1_000 if small else 1]))
    else:
        parent[rng.choice(["x", f"{key}.", "partition"])] = deepcopy(parent[key])


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value
