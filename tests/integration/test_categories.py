"""Real rows whose features are categories of many values, over kills."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.records.encoding import encode
from tests.conftest import data
from tests.integration.harness import Message
from tests.integration.test_stream import command, kill_after, pipeline_of

BEGIN = 1_772_366_400_000
NUMBERS, CATEGORIES = range(1, 14), range(14, 40)
"""Columns of the file, behind the label."""
WORKER = """
[worker]
batch = 500
[checkpoint]
outcomes = 1000
"""


def definition() -> str:
    features = [
        f'n{each} = {{ kind = "number", field = "/n{each}", log = true, missing = 0.0 }}' for each in NUMBERS
    ]
    features += [
        f'c{each} = {{ kind = "category", field = "/c{each}", missing = "" }}' for each in CATEGORIES
    ]
    return "\n".join(
        [
            '[stream]\nname = "adverts"',
            '[stream.interactions]\ntopic = "shown"\nevent_id = "/id"\ntime = "/at"',
            '[stream.labels]\ntopic = "clicks"\nevent_id = "/id"\ntime = "/at"\nvalue = "/clicked"',
            'value_kind = "boolean"',
            '[stream.target]\nname = "clicked"\nabove = 0.5\ncap = 1.0\nscale = 0.5',
            "[stream.features]",
            *features,
            WORKER,
        ]
    )


def rows(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_real_adverts_are_learned_over_kills(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    found = rows(data("files") / "criteo.tsv")
    pipeline = pipeline_of(bootstrap, topic_prefix, tmp_path / "adverts", definition())
    interactions, labels = pipeline.topics.inputs
    sent = []
    for number, row in enumerate(found):
        at, key = BEGIN + 1_000 * number, f"e{number}".encode()
        event = {"id": f"e{number}", "at": at}
        numbers = {f"n{each}": float(row[each]) for each in NUMBERS if row[each]}
        categories = {f"c{each}": row[each] for each in CATEGORIES if row[each]}
        sent.append(Message(interactions, key, encode(event | numbers | categories), at))
        label = {"id": f"e{number}", "at": at + 500, "clicked": row[0] == "1"}
        sent.append(Message(labels, key, encode(label), at + 500))
    pipeline.produce(sent)
    kill_after(pipeline, (1_500, 4_500))
    pipeline.run_until({pipeline.topics.outcomes: len(found)})
    group = ("--group", pipeline.kafka.group)
    assert "no difference" in command(pipeline, "audit", *group)
    assert "identical" in command(pipeline, "rebuild", *group)
    assert pipeline.read(pipeline.topics.dead_letters) == []
    command(pipeline, "export", "predictions", "--to", str(tmp_path / "exported"))
    exported = pl.read_parquet(tmp_path / "exported" / "**" / "*.parquet")
    assert len(exported) == len(found)
    assert {"c14", "score_mixture", "score_dense"} <= {*exported["features"].struct.fields}
    report = json.loads(command(pipeline, "report", "--json"))
    assert report["labelled"] == len(found)
    share = np.mean([row[0] == "1" for row in found])
    constant = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert report["log_loss"] < 0.9 * constant
