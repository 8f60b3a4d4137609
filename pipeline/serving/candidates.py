"""Candidates: interactions of a stream that have not happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.config.stream import Stream
from pipeline.config.stream_features import DerivedFeature
from pipeline.records.entities import entity_fields, tuple_getter
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, feature_field


class CandidateType(NamedTuple):
    """The type of a stream's candidates. They have no event id yet, and no numbers that no model uses.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> candidate = CandidateType.of(KUAIREC).make(5, (7, 3), ())
    >>> candidate.ids, candidate.timestamp
    ((7, 3), 5)
    """

    of_values: Callable[..., Interaction]
    """Makes a candidate of its time in milliseconds, its ids and its features, one after the other."""
    features: Callable[[Interaction], tuple[Any, ...]]
    """Returns the features of a candidate's message, None where one is missing. Hours and weekdays are not
    among them: they follow from the time."""
    names: tuple[str, ...]
    """The names of these features."""

    @staticmethod
    def of(stream: Stream) -> CandidateType:
        """Return the type of a stream, made once."""
        key = stream.model_dump_json()
        if key not in _types:
            _types[key] = _type(stream)
        return _types[key]

    def make(self, timestamp: int, ids: Sequence[Id], features: Sequence[Any]) -> Interaction:
        """Return a candidate.

        Parameters
        ----------
        timestamp
            Its time, in milliseconds.
        ids
            The ids of the stream's entities.
        features
            As `features` returns them.
        """
        return self.of_values(timestamp, *ids, *features)


_types: Final[dict[str, CandidateType]] = {}


def _type(stream: Stream) -> CandidateType:
    ids = entity_fields(len(stream.entities))
    own = [
        (feature_field(number), name)
        for number, (name, feature) in enumerate(stream.features.items())
        if not isinstance(feature, DerivedFeature)
    ]
    fields = [field for field, _ in own]
    made: Any = msgspec.defstruct(
        "Candidate",
        ["timestamp", *ids, *fields],
        bases=(Interaction,),
        namespace={"ids": property(tuple_getter(ids)), "event_id": property(lambda _: "")},
        frozen=True,
        gc=False,
    )
    return CandidateType(made, tuple_getter(fields), tuple(name for _, name in own))
