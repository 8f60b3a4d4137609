from __future__ import annotations

import re
from pathlib import Path

from pipeline.monitoring.families import FAMILIES
from pipeline.monitoring.reference import LABELS, MARKER, tables
from pipeline.monitoring.scrape import PARTITION_STATES
from pipeline.worker.partition import PartitionState

TEXT = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()


def test_the_document_is_what_the_code_makes() -> None:
    assert TEXT[TEXT.index(MARKER) :] == tables(), "python -m pipeline.monitoring.reference docs/metrics.md"


def test_names_are_those_of_openmetrics_and_no_metric_is_there_twice() -> None:
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert not family.name.endswith(("_total", "_info", "_count", "_sum", "_bucket"))
        assert not re.search(r"_(ms|milliseconds|kb|percent)(_|$)", family.name), "base units only"
        assert family.text.endswith(".")


def test_every_label_is_documented_and_used() -> None:
    assert set(LABELS) == {label for family in FAMILIES for label in family.labels}


def test_the_states_of_partitions_are_those_of_the_worker() -> None:
    assert tuple(state.name.lower() for state in PartitionState) == PARTITION_STATES
