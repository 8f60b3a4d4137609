"""Code and schemas say the same of every record."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeline.features.feature_set import EFFECTS
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.dead_letter import LEAST_ROOM, dead_letter_record
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER, InputDecoder, RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import ERROR_HEADERS, Fault
from pipeline.records.outputs import (
    EffectSums,
    EntityCounts,
    Example,
    LabelRequest,
    Outcome,
    Prediction,
    Share,
)
from pipeline.task.record_queue import Position
from pipeline.task.state import (
    CORRECTED,
    COUNTERS,
    ITEMS,
    TABLE_COUNTERS,
    LibraryEpoch,
    SavedLabel,
    SettingsEpoch,
    SnapshotReference,
    State,
)
from pipeline.worker.encoder import RecordEncoder
from tests.support.builders import CHALLENGERS, Inputs, feed_all, join_settings, new_model, new_task
from tests.support.examples import examples
from tests.support.record_strategies import WRITTEN, interactions, labels
from tests.support.streams import policies, streams

FOLDER = Path(__file__).parents[3] / "schemas"
RECORDS: dict[str, type[msgspec.Struct]] = {
    "interaction": KuaiRecInteraction,
    "watch-label": WatchLabel,
    "prediction": Prediction,
    "label-request": LabelRequest,
    "outcome": Outcome,
    "share": Share,
    "state": State,
}
OPTIONAL = (
    *("former", "shared", "challengers", "asked", "effects", "window_end", "closed_until"),
    *("windows", "tables", "libraries"),
)
"""Fields that are not always written."""
LATEST = 2**53
ERROR = ERROR_HEADERS
Json = dict[str, Any]


@cache
def schema(name: str) -> Json:
    loaded: Json = json.loads((FOLDER / f"{name}.schema.json").read_text())
    return loaded


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def errors(name: str, value: bytes) -> list[str]:
    return [error.message for error in validator(name).iter_errors(json.loads(value))]


@pytest.mark.parametrize("name", [*RECORDS, "dead-letter-headers"])
def test_each_is_a_schema_that_explains_itself_and_each_field(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema(name)["title"]
    assert schema(name)["description"]
    parts = [schema(name), *schema(name).get("$defs", {}).values()]
    fields = [field for part in parts for field in part.get("properties", {}).items()]
    fields += [(field["title"], field) for part in parts for field in part.get("prefixItems", ())]
    assert [field for field, about in fields if not about.get("description")] == []


def test_there_is_no_schema_that_nothing_checks() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}.schema.json" for name in (*RECORDS, "dead-letter-headers")
    }


@pytest.mark.parametrize("name", RECORDS)
def test_schema_and_record_have_the_same_fields_in_the_same_order(name: str) -> None:
    fields = list(RECORDS[name].__struct_fields__)
    assert list(schema(name)["properties"]) == fields
    assert schema(name)["required"] == [field for field in fields if field not in OPTIONAL]


def test_records_of_before_a_field_was_added_are_read() -> None:
    state = msgspec.to_builtins(new_task().state({}))
    for later in ("previous", "earlier", "published", "taken"):
        assert not state.pop(later)
    assert msgspec.convert(state, State) == new_task().state({})


@pytest.mark.parametrize("struct", [Position, SnapshotReference, SettingsEpoch, LibraryEpoch, SavedLabel])
def test_so_do_the_parts_of_a_state_record(struct: type[msgspec.Struct]) -> None:
    definition, fields = schema("state")["$defs"][struct.__name__], list(struct.__struct_encode_fields__)
    assert list(definition["properties"]) == fields
    assert definition["required"] == [field for field in fields if field != "behind"]


def test_counters_are_those_that_are_kept() -> None:
    counters = schema("state")["properties"]["counters"]
    assert counters["required"] == list(COUNTERS)
    assert list(counters["properties"]) == [*COUNTERS, CORRECTED, ITEMS, *TABLE_COUNTERS, Fault.PAST]


@pytest.mark.parametrize("struct", [EntityCounts, EffectSums, Example])
def test_the_parts_of_a_share_are_in_their_order(struct: type[msgspec.Struct]) -> None:
    definition = schema("share")["$defs"][struct.__name__]
    assert [each["title"] for each in definition["prefixItems"]] == list(struct.__struct_fields__)
    assert definition["minItems"] == len(definition["prefixItems"])


def test_an_outcome_has_shares_as_they_were_published() -> None:
    share, parts = schema("share"), schema("outcome")["$defs"]
    assert parts["Share"]["properties"] == share["properties"]
    assert parts["Share"]["required"] == share["required"]
    assert share["$defs"].items() <= parts.items()
    examples = parts["Example"]["prefixItems"][3]
    assert examples["minItems"] == examples["maxItems"] == FEATURES_LENGTH


@pytest.mark.parametrize("name", ["prediction", "outcome"])
def test_the_running_features_are_named_in_their_order(name: str) -> None:
    features = schema(name)["properties"]["features"]
    assert tuple(each["title"] for each in features["prefixItems"]) == EFFECTS
    assert features["minItems"] == FEATURES_LENGTH
    assert features["items"] is False


@pytest.mark.parametrize("name", RECORDS)
def test_every_encoded_record_is_valid(name: str) -> None:
    @examples(60)
    @given(record=WRITTEN[name])
    def check(record: msgspec.Struct) -> None:
        assert errors(name, encode(record)) == []

    check()


@examples(60)
@given(
    given_inputs=streams(),
    on_missing=st.sampled_from(["negative", "drop"]),
    challengers=st.sampled_from([{}, CHALLENGERS]),
    policy=policies,
)
def test_whatever_a_task_writes_is_valid(
    given_inputs: Inputs,
    on_missing: str,
    challengers: dict[str, ChallengerSettings],
    policy: LabelPolicy | None,
) -> None:
    model = new_model(challengers=challengers)
    task = new_task(join_settings(on_missing=on_missing), model=model, policy=policy)
    feed_all(task, given_inputs)
    batch = task.advance(len(given_inputs))
    encoded = RecordEncoder().encode(batch)
    for prediction in encoded.predictions.values:
        assert errors("prediction", prediction) == []
    for request in encoded.requests.values:
        assert errors("label-request", request) == []
    for outcome in encoded.outcomes.values:
        assert errors("outcome", outcome) == []
    assert errors("state", encode(task.state({"partitions": "1"}))) == []
    for dead_letter in batch.dead_letters:
        assert dead_letter.fault in schema("dead-letter-headers")["properties"][ERROR + "exception"]["enum"]


def test_the_headers_of_a_dead_letter_are_valid_and_stand_after_its_own() -> None:
    own = [("trace", b"\xff"), ("empty", None)]
    source, known = RawMessage("interactions", 3, 17, b"7", None, own), schema("dead-letter-headers")
    for value, names in ((None, known["required"]), (b"x" * LEAST_ROOM, list(known["properties"]))):
        whole = source._replace(value=value)
        headers = dead_letter_record(whole, Fault.UNDECODABLE, "a tombstone", LEAST_ROOM).headers
        assert headers[:2] == own
        about = {name: value.decode() for name, value in headers[2:] if value is not None}
        assert list(validator("dead-letter-headers").iter_errors(about)) == []
        assert list(about) == names
    assert (about[ERROR + "partition"], about[ERROR + "offset"]) == ("3", "17")


def test_all_faults_are_listed() -> None:
    listed = schema("dead-letter-headers")["properties"][ERROR + "exception"]["enum"]
    assert set(listed) == set(Fault)


def no_integral_float(value: object) -> bool:
    """Tell whether a value is no integral float: that is an integer to JSON Schema, not to the decoder."""
    return not (isinstance(value, float) and value.is_integer())


EDGES = [0, -1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**12, 10**12 + 1, 10**400]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(EDGES)
    | st.floats(allow_nan=False, allow_infinity=False).filter(no_integral_float)
    | st.sampled_from([-0.5, 1e-300, 0.1, 999_999_999.5, 1_000_000_000.5])
    | st.text(max_size=3)
    | st.integers(250, 260).map("x".__mul__)
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner)
)


@st.composite
def changed(draw: st.DrawFn, records: st.SearchStrategy[msgspec.Struct]) -> Json:
    """Draw a record's object with some fields replaced, some left out, some added."""
    value: Json = msgspec.to_builtins(draw(records))
    fields = list(value)
    for field in draw(st.lists(st.sampled_from(fields), max_size=2)):
        value[field] = draw(anything)
    for field in draw(st.lists(st.sampled_from(fields), max_size=1)):
        value.pop(field)
    return value | draw(st.dictionaries(st.text(max_size=3), anything, max_size=1))


def verdict(value: Json, decoder: InputDecoder[Any]) -> bool:
    key, text = str(value.get("user_id")).encode(), json.dumps(value).encode()
    [record] = decode([key], [text], decoder, LATEST)
    if not isinstance(record, RejectedRecord):
        return True
    assert record.fault == "invalid"
    return False


@pytest.mark.parametrize(
    ("name", "records", "decoder"),
    [("interaction", interactions, INTERACTION_DECODER), ("watch-label", labels, LABEL_DECODER)],
)
def test_schema_and_decoder_accept_the_same_inputs(
    name: str, records: st.SearchStrategy[msgspec.Struct], decoder: InputDecoder[Any]
) -> None:
    seen: set[bool] = set()

    @examples(400)
    @given(value=changed(records))
    def check(value: Json) -> None:
        accepted = validator(name).is_valid(value)
        assert accepted == verdict(value, decoder)
        seen.add(accepted)

    check()
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("name", "decoder"), [("interaction", INTERACTION_DECODER), ("watch-label", LABEL_DECODER)]
)
@pytest.mark.parametrize("value", [None, True, 5, "text", [], [{}], {}])
def test_they_agree_on_what_is_no_such_object(name: str, decoder: InputDecoder[Any], value: object) -> None:
    [record] = decode([b"7"], [json.dumps(value).encode()], decoder, LATEST)
    assert isinstance(record, RejectedRecord)
    assert not validator(name).is_valid(value)


Breakage = Callable[[Json], Json]


def without_asked(value: Json) -> Json:
    return {name: field for name, field in value.items() if name != "asked"}


BROKEN: dict[str, tuple[str, Breakage]] = {
    "too few features": ("prediction", lambda value: value | {"features": value["features"][1:]}),
    "too many features": ("prediction", lambda value: value | {"features": [*value["features"], 0.5]}),
    "a probability above 1": ("prediction", lambda value: value | {"probability": 1.5}),
    "no score": ("prediction", lambda value: value | {"score": None}),
    "asked for, but not learned": (
        "outcome",
        lambda value: value | {"label": None, "asked": True, "status": "labelled"},
    ),
    "labelled without a label": (
        "outcome",
        lambda value: without_asked(value) | {"label": None, "status": "labelled"},
    ),
    "expired with a ratio": ("outcome", lambda value: value | {"watch_ratio": 1.0, "status": "expired"}),
    "nothing taken over": ("outcome", lambda value: value | {"shared": []}),
    "a share without its counts": ("share", lambda value: value | {"videos": [[7]]}),
    "another status": ("outcome", lambda value: value | {"status": "lost"}),
    "another version": ("state", lambda value: value | {"version": 2}),
    "a missing counter": ("state", lambda value: value | {"counters": {"late": 1}}),
    "a negative offset": ("state", lambda value: value | {"outcome_offset": -1}),
}


@pytest.mark.parametrize("case", BROKEN)
@examples(5)
@given(data=st.data())
def test_outputs_that_cannot_be_are_not_valid(case: str, data: st.DataObject) -> None:
    name, breakage = BROKEN[case]
    value = breakage(msgspec.to_builtins(data.draw(WRITTEN[name])))
    assert not validator(name).is_valid(value)
