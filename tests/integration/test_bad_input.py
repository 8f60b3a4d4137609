from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.integration.harness import Message, Pipeline, interactions_of, invented_events, labels_of

DAY = 86_400_000
LONG_AGO = 1_600_000_000_000
FAR = int(time.time() * 1000) + 365 * DAY

Change = dict[str, object]
"""Fields of a good record to replace; None takes a field away."""


def changed(message: Message, change: Change) -> Message:
    value = json.loads(message.value or b"")
    value |= change
    kept = {name: content for name, content in value.items() if content is not None}
    return message._replace(value=json.dumps(kept).encode())


def raw(value: bytes | None) -> Callable[[Message], Message]:
    return lambda message: message._replace(value=value)


def cut(message: Message) -> Message:
    return message._replace(value=(message.value or b"")[:-9])


BOTH: dict[str, Callable[[Message], Message]] = {
    "not JSON": raw(b"watch this"),
    "truncated": cut,
    "not UTF-8": raw(b'{"event_id":"\xff\xfe"}'),
    "empty": raw(b""),
    "white space": raw(b" \n "),
    "tombstone": raw(None),
    "another type": raw(b"[1,2,3]"),
    "nested without end": raw(b'{"a":' * 50_000),
    "two in one": lambda m: m._replace(value=(m.value or b"") + b"\n" + (m.value or b"")),
    "no event_id": lambda m: changed(m, {"event_id": None}),
    "an event_id that is none": lambda m: changed(m, {"event_id": True}),
    "an empty event_id": lambda m: changed(m, {"event_id": ""}),
    "a timestamp in words": lambda m: changed(m, {"timestamp": "yesterday"}),
    "a negative timestamp": lambda m: changed(m, {"timestamp": -1}),
    "a timestamp far ahead": lambda m: changed(m, {"timestamp": FAR}),
    "a jump far ahead": lambda m: changed(m, {"timestamp": LONG_AGO + 300 * DAY}),
    "another key": lambda m: m._replace(key=b"somebody"),
    "no key": lambda m: m._replace(key=None),
    "two megabytes of nonsense": raw(b"x" * 2_000_000),
}
INTERACTION = BOTH | {
    "a negative duration": lambda m: changed(m, {"video_duration": -5}),
    "a duration in words": lambda m: changed(m, {"video_duration": "long"}),
    "an endless duration": lambda m: m._replace(value=(m.value or b"")[:-1] + b',"video_duration":1e999}'),
}
LABEL = BOTH | {
    "a ratio that is no number": lambda m: m._replace(
        value=(m.value or b"").replace(b'"watch_ratio":', b'"watch_ratio":NaN,"was":')
    ),
    "a negative ratio": lambda m: changed(m, {"watch_ratio": -0.5}),
    "no ratio": lambda m: changed(m, {"watch_ratio": None}),
    "a negative play": lambda m: changed(m, {"play_duration": -1}),
    "an event nobody saw": lambda m: changed(m, {"event_id": "nobody saw this"}),
}


def test_a_thousand_good_and_bad_messages(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """Every bad one is in dead-letters as it came, with its reason; every good one is processed."""
    chance = random.Random(11)
    large = str(8_000_000)  # a user's topics may take messages over a megabyte
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, max_message_bytes=large)
    good = invented_events(tmp_path, 480)
    bad: list[Message] = []
    sent: list[Message] = []
    for messages, faults in (
        (list(interactions_of(pipeline.topics, good)), INTERACTION),
        (list(labels_of(pipeline.topics, good)), LABEL),
    ):
        spoiled = [spoil(messages[chance.randrange(len(messages))]) for spoil in faults.values()]
        mixed: list[Message] = list(messages)
        for message in spoiled:
            mixed.insert(chance.randrange(1, len(mixed)), message)
        bad += spoiled
        sent += mixed
    assert len(sent) == 960 - 2 * (480 - len(good)) + len(bad) >= 950
    pipeline.produce(sent)
    pipeline.run_until({pipeline.topics.dead_letters: len(bad), pipeline.topics.outcomes: len(good)})

    dead_letters = pipeline.read(pipeline.topics.dead_letters)
    assert Counter((w.key, w.value) for w in dead_letters) == Counter((m.key, m.value) for m in bad)
    for dead_letter in dead_letters:
        headers = {
            name.removeprefix("__streams.errors."): value.decode() for name, value in dead_letter.headers
        }
        assert headers.keys() == {"exception", "message", "topic", "partition", "offset"}
        assert headers["message"]
        source = sent_at(sent, headers["topic"], int(headers["offset"]))
        assert (source.key, source.value) == (dead_letter.key, dead_letter.value)
    assert {p["event_id"] for p in pipeline.read_json(pipeline.topics.predictions)} == set(good["event_id"])
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    assert {o["event_id"] for o in outcomes if o["status"] == "labelled"} == set(good["event_id"])


def sent_at(sent: list[Message], topic: str, offset: int) -> Message:
    return [message for message in sent if message.topic == topic][offset]
