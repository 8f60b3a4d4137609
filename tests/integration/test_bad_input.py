from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.integration.harness import Message, Pipeline, interactions_of, invented_events, labels_of
from tests.security.records import INTERACTION, LABEL, Spoil, changed

OVERSIZED: dict[str, Spoil] = {
    "two megabytes of nonsense": lambda message: message._replace(value=b"x" * 2_000_000)
}
UNSEEN: dict[str, Spoil] = {
    "an event nobody saw": lambda message: changed(message, event_id="nobody saw this")
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
        (list(interactions_of(pipeline.topics, good)), INTERACTION | OVERSIZED),
        (list(labels_of(pipeline.topics, good)), LABEL | OVERSIZED | UNSEEN),
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
