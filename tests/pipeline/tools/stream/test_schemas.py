"""JSON Schemas of a stream's outputs: what they accept, and what they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.encoding import encode
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import EffectSums, EntityCounts
from pipeline.tools.stream import schemas_of
from tests.pipeline.features.test_declared import DECLARED, stream_of
from tests.support.builders import WEIGHTED

STREAMS = {name: stream_of(name) for name in DECLARED} | {"kuairec": KUAIREC}


def records(stream: Stream) -> dict[str, dict[str, Any]]:
    """Return a record of each output."""
    types, layout = OutputTypes.of(stream), FeatureLayout.of(stream)
    make: Any = types
    ids, features = ["e7"] * len(stream.entities), [0.5] * len(layout.names)
    prediction = make.prediction("e", *ids, 5, 0.25, 0.5, True, features, 0, 3)
    counts = [[EntityCounts("e7", 4, 3, 2.5)] for _ in layout.shared]
    sums = None if layout.shared_effects is None else [EffectSums(0.5, 1.0, 0.25, 0.125)]
    share = make.share(1, 0, 4, *counts, [make.example(*ids, 5, features, True, 1.0)], sums)
    outcome = make.outcome(
        *("e", *ids, 5, 0.25, 0.5, True, features, 0, 3),
        *(1.0, True, 6, True, 0.5, "labelled", 2, [share]),
    )
    request = types.label_request.of(prediction, 0)
    found = {"prediction": prediction, "outcome": outcome, "label-request": request, "share": share}
    return {name: json.loads(encode(record)) for name, record in found.items()}


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_written_is_accepted_and_what_lacks_an_id_or_a_feature_is_not(name: str) -> None:
    stream = STREAMS[name]
    schemas, written = schemas_of(stream), records(stream)
    assert schemas.keys() == written.keys()
    for kind, record in written.items():
        Draft202012Validator.check_schema(schemas[kind])
        validator = Draft202012Validator(schemas[kind])
        assert list(validator.iter_errors(record)) == []
        lacking = [*stream.entities, "event_id"] if kind != "share" else ["since"]
        for field in lacking:
            without = {key: value for key, value in record.items() if key != field}
            assert not validator.is_valid(without)
    features = schemas["outcome"]["properties"]["features"]["prefixItems"]
    assert [each["title"] for each in features] == list(FeatureLayout.of(stream).names)
    short = written["outcome"] | {"features": [0.5]}
    assert len(features) == 1 or not Draft202012Validator(schemas["outcome"]).is_valid(short)
    long = written["prediction"] | {"features": [0.5] * (len(features) + 1)}
    assert not Draft202012Validator(schemas["prediction"]).is_valid(long)
    assert stream.target.name in schemas["outcome"]["required"]
    if len(features) > 1:
        written["share"]["examples"][0][-3] = [0.5]
        assert not Draft202012Validator(schemas["share"]).is_valid(written["share"])


def test_only_outcomes_with_weights_have_one() -> None:
    plain, number = schemas_of(KUAIREC), {"type": "number", "minimum": 0, "maximum": 1000}
    number["description"] = "How many labels it counts as."
    for kind, schema in schemas_of(WEIGHTED).items():
        properties = schema["properties"]
        assert ("weight" in properties) == (kind == "outcome")
        assert "weight" not in plain[kind]["properties"]
        if kind == "outcome":
            assert properties["weight"] == number
            assert "weight" in schema["required"]
        if "$defs" in schema:
            before, items = (each["$defs"]["Example"]["prefixItems"] for each in (plain[kind], schema))
            assert [each["title"] for each in items] == [*(each["title"] for each in before), "weight"]
            assert items[-1] == number | {"title": "weight"}


def test_a_command_writes_them(tmp_path: Path) -> None:
    out = tmp_path / "schemas"
    result = CliRunner().invoke(app, ["stream", "schema", "--out", str(out)])
    assert result.exit_code == 0, result.output
    files = sorted(path.name for path in out.iterdir())
    assert files == [f"{name}.schema.json" for name in ("label-request", "outcome", "prediction", "share")]
    printed = json.loads(CliRunner().invoke(app, ["stream", "schema"]).stdout)
    assert printed["share"] == json.loads((out / "share.schema.json").read_bytes())
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(app, ["stream", "schema", "--out", str(tmp_path / "file")])
    assert "cannot be written to" in str(refused.exception)
