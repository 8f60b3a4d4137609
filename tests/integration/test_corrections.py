"""Labels that are corrected through Kafka, over kills: an audit, a rebuild, a report and a recovery."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from tests.integration.harness import Message, Pipeline
from tests.integration.test_stream import command, kill_after

EVENTS = 2_000
CORRECTED = 400
LATE = 200
BEGIN = 1_772_366_400_000
SECOND = 1_000
SETTINGS = """
[join]
window = "10m"
corrections = "{mode}"
[worker]
batch = 100
[checkpoint]
outcomes = 300
"""


def messages(interactions: str, labels: str) -> list[Message]:
    """Plays of which a fifth have their label corrected after two minutes, and a tenth get one too late."""
    found = list[Message]()
    for number in range(EVENTS):
        user, video, at = number % 40, number % 30, BEGIN + SECOND * number
        key, ratio = str(user).encode(), 0.3 + (user * 7 + video * 3) % 11 / 8
        found.append(Message(interactions, key, encode(KuaiRecInteraction(number, user, video, at, 1e4)), at))
        answers = [(at + 20 * SECOND, ratio)]
        if number % 10 == 3:
            answers = [(at + 900 * SECOND, ratio)]
        if number % 5 == 1:
            answers.append((at + 120 * SECOND, 2.0 - ratio))
        for known, value in answers:
            about = WatchLabel(number, user, video, known, 1e4 * value, value)
            found.append(Message(labels, key, encode(about), known))
    return sorted(found, key=lambda each: each.timestamp or 0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["add", "replace"])
def test_labels_are_corrected_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path, mode: str
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, 2)
    file = tmp_path / "forks.toml"
    file.write_text(SETTINGS.format(mode=mode))
    pipeline.options = ("--config", str(file))
    pipeline.produce(messages(*pipeline.topics.inputs))
    kill_after(pipeline, (700, 1_500))
    pipeline.run_until({pipeline.topics.outcomes: EVENTS + CORRECTED + LATE})
    outcomes = pipeline.read_json(pipeline.topics.outcomes)
    status = "replaced" if mode == "replace" else "corrected"
    later = [each for each in outcomes if each["status"] == status]
    assert len(later) == CORRECTED + LATE
    assert len({each["event_id"] for each in later}) == len(later)
    assert pipeline.read(pipeline.topics.dead_letters) == []
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    report = json.loads(command(pipeline, "report", "--json"))
    assert (report["corrected"], report["labelled"], report["expired"]) == (600, EVENTS - LATE, LATE)
    assert report["differences"] == []
    assert "600 later labels" in command(pipeline, "report")
