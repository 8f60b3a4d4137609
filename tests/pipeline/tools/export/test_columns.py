from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from pipeline.config.loader import load
from pipeline.config.stream import KUAIREC
from pipeline.records.output_types import OutputTypes
from pipeline.tools.export.columns import LEFT_OUT, Columns, What

STREAMS = [path for path in (files("pipeline.config") / "streams").iterdir() if path.name.endswith(".toml")]


def columns_of(stream: Any, what: What, tmp_path: Path) -> Columns:
    definition = tmp_path / "stream.toml"
    definition.write_text(stream.read_text())
    config = tmp_path / "forks.toml"
    config.write_text(f'stream = "{definition}"\n')
    settings = load(config, {})
    return Columns(settings.stream, settings.features.kind, what)


@pytest.mark.parametrize("what", ["predictions", "outcomes"])
@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.name)
def test_each_field_of_a_record_is_a_column(stream: Any, what: What, tmp_path: Path) -> None:
    columns = columns_of(stream, what, tmp_path)
    types = OutputTypes.of(load(tmp_path / "forks.toml", {}).stream)
    record: type[msgspec.Struct] = types.prediction if what == "predictions" else types.outcome
    fields = [each.encode_name for each in msgspec.structs.fields(record)]
    assert list(columns.schema) == ["offset", *(name for name in fields if name not in LEFT_OUT)]


def test_weights_of_labels_are_numbers(tmp_path: Path) -> None:
    [deliveries] = [path for path in STREAMS if path.name == "deliveries.toml"]
    path = tmp_path / "weighted.toml"
    path.write_text(deliveries.read_text().replace("\n[labels]\n", '\n[labels]\nweight = "/worth"\n'))
    assert columns_of(path, "outcomes", tmp_path).schema["weight"] == pl.Float64


def test_ids_are_text_whatever_they_are_in_a_record() -> None:
    columns = Columns(KUAIREC, "effects", "predictions")
    assert [columns.schema[name] for name in ("event_id", "user_id", "video_id")] == [pl.String] * 3
