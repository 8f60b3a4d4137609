"""Labels of slates' items that are asked for, through real workers that are killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.test_aligned_slates import CALM, SHARING
from tests.integration.test_slates import DEFINITION, check_run, check_tools, pipeline_of_slates, shelves
from tests.integration.test_stream import command

POLICIES = {
    "margin": 'policy = "margin"\nrate = 0.3\nlearn_unasked = true\n',
    "adaptive": 'policy = "adaptive"\nrate = 0.3\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_each_item_is_asked_for_once_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path, name: str
) -> None:
    folders = tmp_path / "calm", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
    labels = f"[labels]\n{POLICIES[name]}"
    calm = pipeline_of_slates(bootstrap, f"{topic_prefix}calm-", folders[0], CALM + labels)
    sent = shelves(calm.topics)
    calm.produce(sent.messages)
    outcomes = check_run(calm, sent, kills=())

    definition = DEFINITION + SHARING + labels
    killed = pipeline_of_slates(bootstrap, f"{topic_prefix}killed-", folders[1], definition)
    again = shelves(killed.topics)
    killed.produce(again.messages)
    assert check_run(killed, again, kills=(outcomes // 4, outcomes // 2)) == outcomes
    for topic in ("predictions", "outcomes", "label_requests"):
        first, second = (getattr(each.topics, topic) for each in (calm, killed))
        assert killed.read(second) == calm.read(first)

    asked = {
        (each["event_id"], item["product"]): item["asked"]
        for each in killed.read_json(killed.topics.predictions)
        for item in each["items"]
    }
    wanted = Counter(about for about, decided in asked.items() if decided)
    requests = killed.read_json(killed.topics.label_requests)
    assert Counter((each["event_id"], each["product"]) for each in requests) == wanted
    assert all(again.items[each["event_id"]][each["position"]] == each["product"] for each in requests)
    assert 0.25 * outcomes < len(requests) < 0.75 * outcomes
    apart = {event: {asked[event, product] for product in shown} for event, shown in again.items.items()}
    assert any(len(decisions) == 2 for decisions in apart.values()), "items are decided by themselves"

    counts = Counter[str]()
    for each in killed.read_json(killed.topics.outcomes):
        decided, came = asked[each["event_id"], each["product"]], each["status"] == "labelled"
        assert each["asked"] is decided
        learned = decided or (came and "learn_unasked" in POLICIES[name])
        assert (each["loss"] is not None) == learned
        counts.update(unasked=came and not decided)
    assert counts["unasked"] > 100
    check_tools(killed, again, outcomes)
    audited = json.loads(command(killed, "audit", "--json", "--group", killed.kafka.group))
    checked = [each["checked"] for each in audited["partitions"]]
    assert sum(each["decisions to ask for a label derived again"] for each in checked) == outcomes
    assert sum(each["label requests compared with their prediction"] for each in checked) == len(requests)
    assert requests[0]["event_id"] in command(
        killed, "inspect", "label-requests", "--from", "0", "--limit", "1"
    )
