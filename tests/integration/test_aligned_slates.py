"""Partitions that share what slates taught, window by window: kills leave the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_slates import DEFINITION, check_run, check_tools, pipeline_of_slates, shelves
from tests.integration.test_stream import command

SHARING = '[sharing]\ninterval = 5\nalign = "30m"\n'
CALM = DEFINITION.replace("batch = 100", "batch = 5000").replace("max_in_memory = 50\n", "") + SHARING


@pytest.mark.slow
def test_kills_leave_the_same_bytes_of_slates_that_partitions_share(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    folders = tmp_path / "calm", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
    calm = pipeline_of_slates(bootstrap, f"{topic_prefix}calm-", folders[0], CALM)
    sent = shelves(calm.topics)
    calm.produce(sent.messages)
    outcomes = check_run(calm, sent, kills=())

    killed = pipeline_of_slates(bootstrap, f"{topic_prefix}killed-", folders[1], DEFINITION + SHARING)
    again = shelves(killed.topics)
    killed.produce(again.messages)
    assert check_run(killed, again, kills=(outcomes // 4, outcomes // 2)) == outcomes
    assert killed.read(killed.topics.predictions) == calm.read(calm.topics.predictions)
    assert killed.read(killed.topics.outcomes) == calm.read(calm.topics.outcomes)
    assert killed.read_json(killed.topics.shared) == calm.read_json(calm.topics.shared)

    learned = [
        (share, each) for each in killed.read_json(killed.topics.outcomes) for share in each.get("shared", [])
    ]
    assert len(learned) > 100
    assert sum(share["until"] - share["since"] for share, _ in learned) > outcomes // 2
    assert {each["position"] for _, each in learned} >= {0, 1, 2}
    check_tools(killed, again, outcomes)
    assert "no difference" in command(calm, "audit", "--group", calm.kafka.group)
