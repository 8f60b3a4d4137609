"""The types of the outputs, with the names that the stream's definition gives to ids and labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.outcome_encoder import LabelFields
from pipeline.records.outputs import LabelRequest, Outcome, Prediction, RawOutcome

Record = TypeVar("Record", bound=msgspec.Struct)


class OutputTypes(NamedTuple):
    """Types of the records of a stream's outputs, and decoders of these types.

    Examples
    --------
    >>> OutputTypes.of(KUAIREC).prediction is Prediction
    True
    """

    prediction: type[Prediction]
    label_request: type[LabelRequest]
    label_fields: type[LabelFields]
    predictions: msgspec.json.Decoder[Prediction]
    outcomes: msgspec.json.Decoder[Outcome]
    raw_outcomes: msgspec.json.Decoder[RawOutcome]
    requests: msgspec.json.Decoder[LabelRequest]
    outcome: type[Outcome]

    @staticmethod
    def of(stream: Stream) -> OutputTypes:
        """Return the types of a stream, compiled once."""
        user, item = stream.entities
        return _compiled(user, item, stream.target.name)


def renamed(record: type[Record], names: Mapping[str, str]) -> type[Record]:
    """Return a type derived from a record's, some of whose fields have other names in JSON.

    Parameters
    ----------
    record
        The type of the record.
    names
        Names in JSON by name of the field; those of other types are ignored.

    Examples
    --------
    >>> other = renamed(LabelRequest, {"user_id": "courier", "watch_ratio": "minutes"})
    >>> msgspec.json.encode(other("e", 7, 3, 5, 0.5, 9, sequence=4))[:26]
    b'{"event_id":"e","courier":'
    """
    own = {name: names[name] for name in record.__struct_fields__ if name in names}
    if all(name == new for name, new in own.items()):
        return record
    fields = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(record)
    ]
    config = record.__struct_config__
    return msgspec.defstruct(  # type: ignore[return-value]  # which derives from the record's
        record.__name__,
        fields,
        bases=(record,),
        rename=own,
        frozen=config.frozen,
        gc=config.gc,
        omit_defaults=config.omit_defaults,
    )


@lru_cache
def _compiled(user: str, item: str, value: str) -> OutputTypes:
    names = {"user_id": user, "video_id": item, "watch_ratio": value}
    prediction, request = renamed(Prediction, names), renamed(LabelRequest, names)
    outcome, raw = renamed(Outcome, names), renamed(RawOutcome, names)
    decoder = msgspec.json.Decoder
    return OutputTypes(
        prediction,
        request,
        renamed(LabelFields, names),
        decoder(prediction),
        decoder(outcome),
        decoder(raw),
        decoder(request),
        outcome,
    )


KUAIREC_TYPES = OutputTypes.of(KUAIREC)
"""The types of KuaiRec's stream."""
