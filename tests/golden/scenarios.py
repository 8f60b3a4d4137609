"""The inputs and the configuration of each golden replay."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from pipeline.config.feature_layout import FeatureKind
from pipeline.config.settings import Config
from pipeline.config.stream import KUAIREC
from pipeline.config.topics import Topics
from pipeline.kafka.partitioner import partition
from pipeline.sources.kuairec import read_events, tables_beside

INVENTED_EVENTS: Final = 3_000
INVENTED_SLATES: Final = 800
BEGIN: Final = 1_700_000_000_000
"""Time of the first invented event, in milliseconds."""
STEP: Final = 20_000
"""Milliseconds between two invented events."""
CHALLENGERS: Final = {
    "linear": {"learner": "arow"},
    "small": {"learner": "nogd", "budget": 40, "rank": 10},
    "squared": {"learner": "forks", "budget": 40, "cycle": 50, "loss": "squared"},
}


class Input(NamedTuple):
    """A message of an input topic."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(frozen=True)
class Scenario:
    """A fixed replay.

    Attributes
    ----------
    settings
        Sections of the configuration.
    partitions
        Partitions of each topic.
    inputs
        Messages of both inputs, each in the order in which it is produced.
    """

    settings: dict[str, Any]
    partitions: int
    inputs: list[Input]

    @property
    def config(self) -> Config:
        """The configuration, with default names of topics."""
        return Config(**self.settings)

    def environment(self) -> dict[str, str]:
        """Return the settings as environment variables of a worker."""
        return {f"FORKS_{section.upper()}": json.dumps(given) for section, given in self.settings.items()}

    def of_partition(self, topic: str, number: int) -> list[Input]:
        """Messages of one partition of a topic, in the order of their offsets."""
        return [
            each
            for each in self.inputs
            if each.topic == topic and partition(each.key or b"", self.partitions) == number
        ]


def kuairec(folder: Path, kind: FeatureKind) -> Scenario:
    """Return the shared sample of KuaiRec, in two partitions, with all tables and a kind of features."""
    topics = Topics()
    rows = list(read_events(folder).frame.iter_rows(named=True))
    by_label_time = sorted(rows, key=lambda row: row["label_timestamp"])
    inputs = [_input(topics.interactions, row, row["timestamp"], "video_duration") for row in rows]
    inputs += [
        _input(topics.labels, row, row["label_timestamp"], "play_duration", "watch_ratio")
        for row in by_label_time
    ]
    tables = {name: str(path) for name, path in tables_beside(folder).items() if path is not None}
    return Scenario({"features": tables | {"kind": kind}, "sharing": {"interval": "off"}}, 2, inputs)


def invented(*, shared: bool, policy: bool = True, kind: FeatureKind = "effects") -> Scenario:
    """Invented events with every kind of bad and late message, challengers and a label policy.

    Parameters
    ----------
    shared
        Whether the partitions share what they learn.
    policy
        Whether labels are asked for by a policy; all are learned otherwise.
    kind
        The kind of the running features.
    """
    settings: dict[str, Any] = {
        "join": {"window": "30m", "early": "5m", "max_jump": "2d", "max_pending": 12},
        "learner": {"budget": 60, "cycle": 80},
        "features": {"max_entities": 30, "kind": kind},
        "challengers": CHALLENGERS,
    }
    if policy:
        settings["labels"] = {"policy": "adaptive", "rate": 0.5, "seed": 7}
    settings["sharing"] = {"interval": 20 if shared else "off"}
    return Scenario(settings, 3, list(_invented_inputs()))


def slates() -> Scenario:
    """Invented slates of videos, with bad, late and early messages, challengers and shares."""
    interactions = KUAIREC.interactions.model_dump() | {
        "items": "/items",
        "item_fields": ["video_id", "video_duration"],
        "max_items": 5,
    }
    settings: dict[str, Any] = {
        "stream": KUAIREC.model_dump(mode="json") | {"interactions": interactions},
        "join": {"window": "30m", "early": "5m", "max_pending": 40},
        "learner": {"budget": 60, "cycle": 80},
        "features": {"max_entities": 30},
        "challengers": CHALLENGERS,
        "sharing": {"interval": 20},
    }
    return Scenario(settings, 3, list(_slate_inputs()))


def categories() -> Scenario:
    """The invented events with categories that have no columns, one of many values, and a number."""
    features = {
        "site": {"kind": "category", "field": "/site", "missing": "none"},
        "form": {"kind": "category", "field": "/form"},
        "size": {"kind": "number", "field": "/size"},
    }
    settings: dict[str, Any] = {
        "stream": KUAIREC.model_dump(mode="json") | {"features": features},
        "join": {"window": "30m", "early": "5m", "max_pending": 40},
        "learner": {"budget": 60, "cycle": 80},
        "features": {"max_entities": 30, "max_categories": 1_024},
        "challengers": CHALLENGERS,
        "sharing": {"interval": 20},
    }
    return Scenario(settings, 3, list(_categorized_inputs()))


def _categorized_inputs() -> Iterator[Input]:
    chance, interactions = random.Random(29), Topics().interactions
    for each in _invented_inputs():
        message = each
        if each.topic == interactions and (each.value or b"").endswith(b"}"):
            row = json.loads(each.value or b"")
            row |= {"form": chance.randrange(4), "size": _noise(chance, 2.0)}
            if chance.random() < 0.9:
                row["site"] = f"site {min(chance.randrange(2_000), chance.randrange(2_000))}"
            message = each._replace(value=json.dumps(row).encode())
        yield message


def _slate_inputs() -> Iterator[Input]:
    """Interactions first, then labels."""
    chance, topics = random.Random(23), Topics()
    labels: list[Input] = []
    for number in range(INVENTED_SLATES):
        timestamp, user = BEGIN + 3 * STEP * number, chance.randrange(40)
        key = str(user).encode()
        videos = chance.sample(range(60), chance.randint(1, 5))
        items: list[dict[str, Any]] = [{"video_id": each, "video_duration": 30_000.0} for each in videos]
        slate = {"event_id": f"slate-{number}", "user_id": user, "timestamp": timestamp}
        for video in [*videos, 99] if number % 37 == 3 else videos:  # one that was not shown
            if chance.random() < 0.3:
                continue
            ratio = max(0.0, 0.8 + (user % 7 - 3) / 10 + (video % 11 - 5) / 10 + _noise(chance, 0.3))
            known = timestamp + int(chance.expovariate(1 / 600_000)) - 60_000 * (number % 41 == 4)
            said = {"video_id": video, "play_duration": 30_000.0 * ratio, "watch_ratio": ratio}
            label = json.dumps(slate | {"timestamp": known} | said).encode()
            labels += [Input(topics.labels, key, label, known)] * (1 + (number % 29 == 5))
        if number % 31 == 1:
            items.append(items[0])  # twice: a dead letter
        message = Input(topics.interactions, key, json.dumps(slate | {"items": items}).encode(), timestamp)
        yield from [message] * (1 + (number % 23 == 2))
        if number % 47 == 6:
            yield message._replace(value=json.dumps(slate | {"items": []}).encode())
    yield from sorted(labels, key=lambda each: each.timestamp)


def _noise(chance: random.Random, spread: float) -> float:
    """Return a normal number with six decimals; further ones hang on the C library's logarithm and cosine."""
    return round(chance.gauss(0, spread), 6)


def _input(topic: str, row: dict[str, Any], timestamp: int, *fields: str) -> Input:
    record = {name: row[name] for name in ("event_id", "user_id", "video_id")} | {"timestamp": timestamp}
    value = json.dumps(record | {name: row[name] for name in fields}).encode()
    return Input(topic, str(row["user_id"]).encode(), value, timestamp)


def _invented_inputs() -> Iterator[Input]:
    """Interactions first, then labels; only `random.Random`, whose numbers no version changes."""
    chance, topics = random.Random(17), Topics()
    tastes = defaultdict[int, float](lambda: chance.uniform(-1, 1))
    labels: list[Input] = []
    for number in range(INVENTED_EVENTS):
        user, video = chance.randrange(40), chance.randrange(60)
        timestamp = BEGIN + STEP * number
        play = 30_000.0 * max(0.0, 0.8 + tastes[user] + tastes[1_000 + video] + _noise(chance, 0.4))
        row = {
            "event_id": f"event-{number}" if number % 3 else number,
            "user_id": user if user % 4 else f"user {user}",
            "video_id": video,
            "video_duration": 30_000.0,
            "play_duration": play,
            "watch_ratio": play / 30_000.0,
        }
        yield _input(topics.interactions, row, timestamp, "video_duration")
        delay = (
            int(chance.expovariate(1 / 300_000)) if number % 11 else 40 * 60_000
        )  # the latter come too late
        labelled = {**row, "video_id": 99} if number % 89 == 5 else row
        label = _input(topics.labels, labelled, timestamp + delay, "play_duration", "watch_ratio")
        if number % 17:
            labels.append(label)
        if number % 53 == 0:
            labels.append(label)
            yield _input(topics.interactions, row, timestamp, "video_duration")
        key = str(row["user_id"]).encode()
        if number % 97 == 1:
            yield Input(topics.interactions, key, b'{"event_id": 1', timestamp)
            yield Input(topics.interactions, key, None, timestamp)
            labels.append(Input(topics.labels, key, b'{"event_id": -0.5}', timestamp))
            yield _input(
                topics.interactions, {**row, "event_id": number + 3 * 10**6}, timestamp, "video_duration"
            )._replace(key=b"another")
        if number % 71 == 2:
            orphan = {**row, "event_id": f"nobody-{number}"}
            labels.append(_input(topics.labels, orphan, timestamp, "play_duration", "watch_ratio"))
            jump = _input(
                topics.interactions, {**row, "event_id": number + 10**6}, timestamp + 10**9, "video_duration"
            )
            yield jump
        if number % 61 == 3:  # the label is there before its interaction
            early = {**row, "event_id": number + 2 * 10**6}
            labels.append(_input(topics.labels, early, timestamp, "play_duration", "watch_ratio"))
            yield _input(topics.interactions, early, timestamp + 60_000, "video_duration")
    yield from sorted(labels, key=lambda each: each.timestamp)
