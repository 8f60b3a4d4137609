"""Render records as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

import msgspec
from rich.text import Text

from pipeline.config.feature_layout import FeatureKind, FeatureLayout
from pipeline.config.stream import KUAIREC, Stream, entity_word
from pipeline.kafka.types import ConsumerRecord
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.decoding import decode_value
from pipeline.records.fields import Id
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label, Slate
from pipeline.records.names import is_state_key, parse_snapshot_key
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.task.state import State
from pipeline.tools.inspect.kinds import Kind
from pipeline.tools.inspect.readable import described, printable
from pipeline.tools.terminal import number_or_dash
from pipeline.tools.times import duration, instant

_STATES = msgspec.json.Decoder(State)


class Format(NamedTuple):
    """How records are read and shown."""

    names: Sequence[str]
    """Names of the features."""
    types: OutputTypes
    """Types of the outputs."""
    ids: Sequence[str]
    """What the ids are ids of."""
    tables: Sequence[str]
    """What is counted in each of the tables that partitions share."""
    labels: Mapping[bool | None, str]
    """What a positive label, a negative one and none are called; numbers are shown as they are."""
    inputs: InputDecoders
    """Decoders of the inputs."""

    @classmethod
    def of(cls, stream: Stream, kind: FeatureKind = "effects", inputs: InputDecoders | None = None) -> Self:
        """Return the format of a stream's records, with this kind of features; inputs are JSON by default."""
        layout = FeatureLayout.of(stream, kind)
        words = ("watched", "not") if stream.is_kuairec else ("positive", "negative")
        labels = {True: words[0], False: words[1], None: "-"}
        ids, tables = (
            map(entity_word, stream.entities),
            (layout.tables[number].word for number in layout.shared),
        )
        decoders = inputs or InputDecoders.of(stream.in_json)
        return cls(layout.names, OutputTypes.of(stream), [*ids], [*tables], labels, decoders)


DEFAULT_FORMAT: Final = Format.of(KUAIREC)
OFFSET_WIDTH: Final = 10
TIME_WIDTH: Final = 23
INDENT: Final = " " * (OFFSET_WIDTH + 2)
ID_CUT: Final = 32
ENTITY_WIDTH: Final = 8
NAME_WIDTH: Final = 22
"""Width of the column of names, at least."""


def heading(kind: Kind, how: Format = DEFAULT_FORMAT) -> Text:
    """Return the line with the names of the columns."""
    ids = "".join(f"  {printable(name, ENTITY_WIDTH):>{ENTITY_WIDTH}}" for name in how.ids)
    columns = f"{'offset':>{OFFSET_WIDTH}}  {'time (UTC)':{TIME_WIDTH}}"
    if kind in (Kind.PREDICTIONS, Kind.OUTCOMES):
        columns += f"  {'event':28}{ids}  {'score':>7}  {'prob.':>5}  {'predicted':9}"
    if kind is Kind.LABEL_REQUESTS:
        columns += f"  {'event':28}{ids}  {'score':>7}"
    if kind in (Kind.INTERACTIONS, Kind.LABELS):
        columns += f"  {'event':28}{ids}"
    if kind is Kind.LABELS:
        columns += f"  {'value':>7}"
    if kind is Kind.OUTCOMES:
        columns += f"  {'label':8}  {'ratio':>6}  {'after':>8}"
    if kind is Kind.SHARED:
        columns += f"  {'outcomes':>20}  {'entities':>8}  {'labels':>6}  {'positive':>8}  {'examples':>8}"
    return Text(columns.rstrip(), style="bold")


def show(kind: Kind, message: ConsumerRecord, *, detail: bool = False, how: Format = DEFAULT_FORMAT) -> Text:
    """Render a message in one line or a few.

    Parameters
    ----------
    kind
        Kind of the record. A message that cannot be decoded as such is shown as raw key and value.
    message
        Message of the topic.
    detail
        Whether to show every field of inputs, predictions and outcomes, with the names of the features, and
        every video and example of shares.
    how
        Names of the running features, and types of the outputs.

    Returns
    -------
    Text
        Lines of the message.
    """
    try:
        lines = list(_FORMATTERS[kind](message, detail, how))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        lines = [
            Text(
                f"cannot be decoded: {printable(getattr(message, 'fault', None) or str(error))}", style="red"
            ),
            Text.assemble(("key    ", "dim"), described(message.key())),
            Text.assemble(("value  ", "dim"), described(message.value())),
        ]
    partition_offset = f"{message.partition()}:{message.offset()}"
    first = Text.assemble(
        (f"{partition_offset:>{OFFSET_WIDTH}}", "bold"), f"  {instant(message.timestamp()[1])}  "
    )
    return first + Text(f"\n{INDENT}").join(lines)


def _interaction(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    value = message.value() or b""
    record = decode_value(value, how.inputs.interactions)
    for each in record.items if isinstance(record, Slate) else [record]:
        yield Text(_ids_columns(each))
    if detail:
        yield from _leaves(how.inputs.interactions.parse(value))


def _label(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    value = message.value() or b""
    label = decode_value(value, how.inputs.labels)
    yield Text(f"{_ids_columns(label)}  {label.watch_ratio:>7.4g}")
    if detail:
        yield from _leaves(how.inputs.labels.parse(value))


def _leaves(value: object, path: str = "") -> Iterator[Text]:
    """Yield one line for each field of a message, with its pointer."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{path}/{name}")
    else:
        yield Text.assemble((f"{printable(path):{NAME_WIDTH}} ", "dim"), printable(str(value)))


def _prediction(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    for prediction in how.types.predictions_of(message.value() or b""):
        yield _prediction_columns(prediction, how)
        if detail:
            yield from _fields(prediction, how.names)


def _outcome(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    outcome = how.types.outcomes.decode(message.value() or b"")
    style = {True: "green", False: "red", None: ""}[outcome.correct]
    delay = None if outcome.label_timestamp is None else outcome.label_timestamp - outcome.timestamp
    yield Text.assemble(
        _prediction_columns(outcome, how),
        (f"  {_label_text(outcome.label, how):8}", style),
        f"  {number_or_dash(outcome.watch_ratio, '.2f'):>6}",
        f"  {outcome.status if delay is None else duration(delay):>8}",
    )
    if detail:
        yield from _fields(outcome, how.names)


def _prediction_columns(record: Prediction | Outcome, how: Format) -> Text:
    probability = number_or_dash(record.probability, ".3f")
    return Text(f"{_event_columns(record)}  {probability:>5}  {_label_text(record.predicted, how):9}")


def _event_columns(record: Prediction | Outcome | LabelRequest) -> str:
    return f"{_ids_columns(record)}  {record.score:>+7.3f}"


def _ids_columns(record: Prediction | Outcome | LabelRequest | Interaction | Label) -> str:
    event, *ids = (printable(str(name), ID_CUT) for name in (record.event_id, *record.ids))
    return f"{event:28}{''.join(f'  {name:>8}' for name in ids)}"


def _fields(record: Prediction | Outcome, names: Sequence[str]) -> Iterator[Text]:
    """Yield one line for each field, and for each feature."""
    width = max(NAME_WIDTH, *(1 + len(name) for name in names))
    for name, value in _named(record):
        if name != "features":
            yield Text.assemble((f"{name:{width}}", "dim"), printable(str(value)))
    for name, value in zip(names, record.features, strict=True):
        yield Text.assemble((f"{name:{width}}", "dim"), repr(value))


def _named(record: msgspec.Struct) -> Iterator[tuple[str, object]]:
    """Yield the fields of a record with their names in JSON."""
    return zip(record.__struct_encode_fields__, msgspec.structs.astuple(record), strict=True)


def _label_request(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    request = how.types.requests.decode(message.value() or b"")
    yield Text(_event_columns(request))
    if detail:
        for name, value in _named(request):
            yield Text.assemble((f"{name:22}", "dim"), printable(str(value)))


def _share(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:
    share = how.types.shares.decode(message.value() or b"")
    outcome_range = f"{share.since:,} to {share.until - 1:,}"
    counts = [each for of_table in share.counts for each in of_table]
    first = share.counts[0] if share.counts else []
    labels, positive = (sum(getattr(each, name) for each in first) for name in ("events", "labels"))
    yield Text(f"{outcome_range:>20}  {len(counts):>8}  {labels:>6}  {positive:>8}  {len(share.examples):>8}")
    if detail:
        for word, of_table in zip(how.tables, share.counts, strict=True):
            for each in of_table:
                said = f"{each.labels:,} of {each.events:,} {how.labels[True]}, values {each.values:g} in all"
                name = f"{word} {printable(_key_text(each.entity), ID_CUT)}"
                yield Text.assemble((f"{name:22}", "dim"), said)
        for example in share.examples:
            ids = (printable(str(name), ID_CUT) for name in example.ids)
            named = ", ".join(f"{word} {name}" for word, name in zip(how.ids, ids, strict=True))
            yield Text.assemble((f"{'example':22}", "dim"), f"{named}: {_label_text(example.label, how)}")


def _label_text(label: bool | float | None, how: Format) -> str:
    return how.labels[label] if label is None or isinstance(label, bool) else f"{label:.4g}"


def _key_text(key: Id | tuple[Id, ...]) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _dead_letter(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:  # noqa: ARG001 - all fields are always shown
    dead_letter = read_dead_letter(message)
    origin = (
        f"{dead_letter.topic} {dead_letter.partition}:{dead_letter.offset}"
        if dead_letter.topic
        else "of unknown origin"
    )
    yield Text.assemble(
        (printable(dead_letter.fault or "no fault named"), "bold red"), f"  {printable(origin)}"
    )
    yield Text(printable(dead_letter.reason or "no reason given"))
    yield Text.assemble(("key    ", "dim"), described(message.key()))
    yield Text.assemble(("value  ", "dim"), described(message.value()))
    for name, value in dead_letter.headers:
        yield Text.assemble(("header ", "dim"), f"{printable(name)}, {described(value)}")


def _checkpoint(message: ConsumerRecord, detail: bool, how: Format) -> Iterator[Text]:  # noqa: ARG001 - all fields are always shown
    chunk = parse_snapshot_key(message.key())
    if chunk is not None:
        size = len(message.value() or b"")
        yield Text.assemble(
            ("snapshot", "bold"), f"  slot {chunk.slot}, chunk {chunk.number}, {size:,} bytes"
        )
    elif is_state_key(message.key()):
        yield from _state(_STATES.decode(message.value() or b""))
    else:
        raise msgspec.DecodeError("the key is neither that of a state record nor of a snapshot")


def _state(state: State) -> Iterator[Text]:
    yield Text.assemble(("state", "bold"), f"  stream time {instant(state.stream_time)}")
    snapshot = "none yet"
    if state.snapshot is not None:
        reference = state.snapshot
        chunks = ", ".join(map(str, reference.chunks))
        snapshot = (
            f"slot {reference.slot} of {reference.outcomes_learned:,} outcomes, chunks at {chunks}, outcomes "
            f"since from {reference.outcome_offset}, SHA-256 {printable(reference.sha256, 16)}"
        )
    for name, value in {
        "next input": f"interactions {state.interactions.offset}, labels {state.labels.offset}",
        "written": f"{state.predictions:,} predictions, {state.outcomes:,} outcomes",
        "waiting": f"{state.pending:,} predictions for their label, {len(state.waiting):,} labels for their "
        "interaction",
        "read from": f"predictions {state.prediction_offset}, outcomes {state.outcome_offset}",
        "snapshot": snapshot,
        "counters": ", ".join(f"{printable(name)} {count:,}" for name, count in state.counters.items()),
    }.items():
        yield Text.assemble((f"{name:12}", "dim"), value)


_FORMATTERS: Final = {
    Kind.INTERACTIONS: _interaction,
    Kind.LABELS: _label,
    Kind.PREDICTIONS: _prediction,
    Kind.OUTCOMES: _outcome,
    Kind.DEAD_LETTERS: _dead_letter,
    Kind.CHECKPOINTS: _checkpoint,
    Kind.LABEL_REQUESTS: _label_request,
    Kind.SHARED: _share,
}
