"""The whole path as a user sees it: `forks demo`, on real KuaiRec rows."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pipeline.config.tree import Learner
from pipeline.features.tables import Tables
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.kuairec import read_events, tables_beside
from tests.integration.harness import FORKS, TIMEOUT, Pipeline
from tests.support.offline import offline, pairs_of


@pytest.mark.slow
def test_demo_on_real_rows(bootstrap: str, kuairec: Path, tmp_path: Path) -> None:
    """Nothing is lost or made up, mistakes are few, and every score is that of a loop without Kafka."""
    done = subprocess.run(
        [*FORKS, "demo", "--data", kuairec, "--json"],
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"FORKS_KAFKA__BOOTSTRAP": bootstrap},
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    events = read_events(kuairec)
    assert figures["events"] == figures["predictions"] == figures["outcomes"] == len(events)
    assert figures["labelled"] == len(events)
    assert figures["dead_letters"] == 0
    assert figures["differences"] == []
    assert 0 < figures["killed_at"] < len(events)
    assert figures["mistakes"] <= 0.269
    assert figures["mistakes"] < figures["running_means"] < figures["majority"]
    assert figures["auc"] > figures["running_means_auc"]
    assert "CC BY-SA 4.0" in (tmp_path / "forks-data" / "demo.svg").read_text()

    pipeline = Pipeline(bootstrap, figures["prefix"], tmp_path)
    committed = [
        (prediction["event_id"], float.hex(prediction["score"]))
        for prediction in pipeline.read_json(pipeline.topics.predictions)
    ]
    pairs = pairs_of(kuairec)
    found = tables_beside(kuairec)
    tables = Tables(found["users"], found["tags"], found["daily"])
    assert tables.columns == 212
    assert tables.tags is not None
    scores, _ = offline(pairs, learner_settings(Learner(), tables.columns), tables, tables.tags.lists)
    assert committed == [
        (pair.interaction.event_id, float.hex(score)) for pair, score in zip(pairs, scores, strict=True)
    ]
