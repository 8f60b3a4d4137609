"""Numbers that slates carry: of each item, or of the message, in predictions and in outcomes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Config
from pipeline.config.stream import CARRIED, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.records.decoding import RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage, Slate
from pipeline.records.output_types import OutputTypes
from pipeline.tools.stream.schemas import schemas_of
from tests.support.builders import ALL, Inputs, Written, feed_all, join_settings, new_model, new_task
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.entries import entries
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.recording import Recording, record
from tests.support.slates import SLATES, inputs, label, slate, slates
from tests.support.spilling import small_blocks

NUMBERS: list[dict[str, Any]] = [
    {"propensity": 0.1 + 0.2, "target_propensity": 0, "estimate": -0.5, "target_estimate": 3},
    {"propensity": 1, "estimate": None},
    {},
]


def carrying(*of_item: str) -> Stream:
    """SLATES, with all numbers that can be carried: those of these names in the items."""
    definition = SLATES.model_dump()
    definition["interactions"] |= {name: f"/{name}" for name in CARRIED}
    definition["interactions"]["item_fields"] += of_item
    return Stream.model_validate(definition)


OF_ITEMS, OF_MESSAGES, MIXED = carrying(*CARRIED), carrying(), carrying("estimate", "target_estimate")
STREAMS = {"of items": OF_ITEMS, "of messages": OF_MESSAGES, "of both": MIXED}
each_stream = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)


def with_numbers(given_inputs: Inputs, stream: Stream) -> Inputs:
    """Return the same slates, messages and items with numbers in turn."""
    decoders = InputDecoders.of(stream)

    def extend(number: int, source: RawMessage) -> RawMessage:
        try:
            message = msgspec.json.decode(source.value or b"")
            items = enumerate(message["items"])
        except (msgspec.DecodeError, KeyError):
            return source
        shown = [each | NUMBERS[(number + place) % len(NUMBERS)] for place, each in items]
        value = message | NUMBERS[number % len(NUMBERS)] | {"items": shown}
        return source._replace(value=encode(value))

    changed = [extend(number, each.source) for number, each in enumerate(given_inputs.interactions)]
    return Inputs(
        entries(changed, decoders.interactions, 10**9),
        entries([each.source for each in given_inputs.labels], decoders.labels, 10**9),
    )


def few(stream: Stream) -> Inputs:
    shown = [slate(number, 20 * number, [number % 5, 10, 20 + number % 3]) for number in range(40)]
    return with_numbers(inputs(shown, [label(n, 20 * n + 35, 10, n % 3) for n in range(35)]), stream)


def run(given_inputs: Inputs, stream: Stream) -> Written:
    task = new_task(model=new_model(features=FeatureSet.of(stream)))
    feed_all(task, given_inputs)
    return Written.of([task.advance(ALL)], stream)


@each_stream
def test_predictions_have_them_in_items_and_outcomes_behind_the_features(stream: Stream) -> None:
    written = run(few(stream), stream)
    carried: dict[tuple[int, int], dict[str, Any]] = {}
    for number, value in enumerate(written.predictions):
        for place, item in enumerate(msgspec.json.decode(value)["items"]):
            of_item, of_message = (NUMBERS[n % len(NUMBERS)] for n in (number + place, number))
            expected = {
                name: (of_item if name in stream.interactions.item_fields else of_message).get(name)
                for name in CARRIED
            }
            assert {name: item[name] for name in CARRIED} == expected
            assert [*item][-4:] == [*CARRIED]
            carried[number, place] = expected
    assert written.outcomes
    for value in written.outcomes:
        fields = msgspec.json.decode(value)
        expected = carried[fields["prediction_sequence"], fields["position"]]
        assert {name: fields[name] for name in CARRIED} == expected
        names = [*fields]
        assert names[names.index("features") + 1 :][:5] == [*CARRIED, "model_version"]


@each_stream
def test_all_else_is_as_without_them(stream: Stream) -> None:
    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(each) for each in value]
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name not in CARRIED}
        return value

    found, expected = run(few(stream), stream), run(few(SLATES), SLATES)
    for one, other in zip(
        (*found.predictions, *found.outcomes), (*expected.predictions, *expected.outcomes), strict=True
    ):
        assert encode(without(msgspec.json.decode(one))) == other


@pytest.mark.parametrize(
    ("stream", "where", "reason"),
    [
        (OF_ITEMS, "item", "Expected `float` <= 1.0 - at `$.items[1].propensity`"),
        (OF_MESSAGES, "message", "Expected `float` <= 1.0 - at `$.propensity`"),
    ],
)
def test_what_is_no_propensity_makes_a_dead_letter(stream: Stream, where: str, reason: str) -> None:
    message = msgspec.json.decode(slate("e", 5, [3, 4]))
    (message["items"][1] if where == "item" else message)["propensity"] = 1.5
    decoder = InputDecoders.of(stream).interactions
    [rejected] = decode([b"1"], [encode(message)], decoder, 10**9)
    assert isinstance(rejected, RejectedRecord)
    assert (rejected.fault, rejected.reason) == ("invalid", reason)
    message = msgspec.json.decode(slate("e", 5, [3, 4])) | {"propensity": 0.5}
    message["items"][0] |= {"propensity": 0.25}
    [found] = decode([b"1"], [encode(message)], decoder, 10**9)
    assert isinstance(found, Slate)
    numbers = [each.carried[0] for each in found.items]
    assert numbers == ([0.25, None] if where == "item" else [0.5, 0.5])


@examples(40)
@given(
    given_inputs=slates(),
    drawn=st.lists(st.tuples(steps, st.booleans(), st.booleans()), max_size=10),
    stream=st.sampled_from([*STREAMS.values()]),
)
def test_deaths_and_what_is_spilled_do_not_show(
    given_inputs: Inputs, drawn: list[tuple[Step, bool, bool]], stream: Stream
) -> None:
    given_inputs, types = with_numbers(given_inputs, stream), OutputTypes.of(stream)
    expected = run(given_inputs, stream)
    join = join_settings(max_in_memory=1)
    log = OutputLog(stream=stream, make_spilled=lambda: small_blocks(types=types))
    model = new_model(features=FeatureSet.of(stream))
    task = new_task(join, model=model, spilled=small_blocks(types=types))
    delivery = Delivery(task, given_inputs)
    for step, snapshot, dies in (*drawn, (REST, True, True)):
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot)
        if dies:
            task = log.restore(join)
            positions = (task.interactions.position.offset, task.labels.position.offset)
            delivery = Delivery(task, given_inputs.from_positions(*positions))
    assert log.written == expected


def recording(stream: Stream) -> Recording:
    return record(few(stream), [(REST, True)], join_settings(), stream=stream)


@each_stream
def test_a_run_is_clean_and_an_audit_finds_another_number(stream: Stream) -> None:
    found = recording(stream)
    assert found.findings() == []
    found.change_outcome(7, propensity=0.7)
    assert "propensity" in found.first().expected
    found = recording(stream)
    source = found.predictions[20]
    message = msgspec.json.decode(source.value or b"")
    message["items"][1]["estimate"] = 17.0
    found.predictions[20] = source._replace(value=encode(message))
    assert any(each.topic == "predictions" for each in found.findings())


def test_an_item_field_is_something_that_is_read_and_has_one_meaning() -> None:
    definition = SLATES.model_dump()
    definition["interactions"]["item_fields"] += ("propensity",)
    with pytest.raises(ValueError, match="item_fields name propensity, which is no entity, number, feature"):
        Stream.model_validate(definition)
    definition["interactions"]["propensity"] = "/p"
    definition["features"] = {"propensity": {"kind": "number", "field": "/p2"}}
    with pytest.raises(ValueError, match="item_fields name propensity, which has two meanings"):
        Stream.model_validate(definition)
    assert OF_ITEMS.is_item_field("propensity")
    assert not OF_MESSAGES.is_item_field("propensity")
    assert not OF_ITEMS.is_item_field("features.estimate_of_price")
    Config(stream=OF_ITEMS)


def test_the_schema_of_a_prediction_has_them_in_its_items() -> None:
    item = schemas_of(OF_ITEMS)["prediction"]["$defs"]["SlateItem"]
    assert {*CARRIED} <= {*item["required"]}
    assert all(item["properties"][name]["description"] for name in CARRIED)
