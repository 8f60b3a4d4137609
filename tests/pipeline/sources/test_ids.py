"""What identifies is the same in messages, in requests for scores, and in tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from pipeline.config.settings import Join, Serve
from pipeline.config.stream import Stream
from pipeline.errors import DataError
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.serving.scoring_requests import RequestDecoder, RequestError
from pipeline.sources.rows import read_rows

STREAM = Stream.model_validate(
    {
        "name": "s",
        "entities": {"user": "/user"},
        "interactions": {"topic": "in", "event_id": "/id", "time": "/at"},
        "labels": {"topic": "labels", "event_id": "/id", "time": "/known", "value": "/y"},
        "target": {"name": "y", "above": 0.5, "cap": 1, "scale": 1},
    }
)
UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("value", "usable", "in_tables"),
    [
        (UUID, True, UUID),
        ("x" * 256, True, "x" * 256),
        (-(2**63), True, -(2**63)),
        (2**63 - 1, True, 2**63 - 1),
        (2**63, False, str(2**63)),
        (5.0, False, 5),
        (5.5, False, None),
        (True, False, None),
        ([1], False, None),
    ],
    ids=lambda each: str(each)[:30],
)
def test_the_rule_is_the_same_everywhere(value: Any, usable: bool, in_tables: Any, tmp_path: Path) -> None:
    message = encode({"id": "e", "user": value, "at": 5})
    request = encode({"user": value, "items": [{}]})
    decode, asked = (
        InputDecoders.of(STREAM).interactions.decode,
        RequestDecoder(STREAM, Serve(), Join()).decode,
    )
    if usable:
        assert decode(message).ids == asked(request).candidates[0].ids == (value,)
    else:
        with pytest.raises(msgspec.ValidationError, match="user"):
            decode(message)
        with pytest.raises(RequestError) as caught:
            asked(request)
        assert str(caught.value.field).endswith("user")
    path = tmp_path / "rows.parquet"
    unsigned = {"user": pl.UInt64} if value == 2**63 else None
    pl.DataFrame({"user": [value], "at": [5], "y": [1]}, schema_overrides=unsigned).write_parquet(path)
    if in_tables is None:
        with pytest.raises(
            DataError, match=r"/user has values of the type .*; ids are text or whole numbers"
        ):
            read_rows(path, STREAM, 0)
    else:
        assert read_rows(path, STREAM, 0).frame["entity_0"].to_list() == [in_tables]


def test_a_request_says_no_time_of_the_day() -> None:
    times = {"time_unit": "iso8601", "utc_offset": "+00:00", "time_of_day": "/hour"}
    definition = STREAM.model_dump(mode="json", exclude_none=True)
    stream = Stream.model_validate(definition | {"interactions": definition["interactions"] | times})
    [candidate] = RequestDecoder(stream, Serve(), Join()).decode(b'{"user":7,"items":[{}]}').candidates
    assert candidate.ids == (7,)
