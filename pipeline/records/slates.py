"""Records of slates: one prediction for all items that were shown together.

An outcome is of one item, with its position. So is what waits for a label: a `Prediction` of one item, which
is in no topic. `Slates` makes those of a record, and `item_number` the number by which they are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config.stream import MAX_ITEMS
from pipeline.records.entities import tuple_getter
from pipeline.records.fields import Count, Features, Id, Probability, Scores, Timestamp, always
from pipeline.records.inputs import Carried
from pipeline.records.outputs import Prediction

STRIDE: Final = 1_024
"""Numbers of items that belong to one prediction."""
Number = TypeVar("Number", int, NDArray[np.int64])
Position = Annotated[int, msgspec.Meta(ge=0, lt=MAX_ITEMS)]
"""The place of an item in its slate, from 0."""


def item_number(sequence: Number, position: Number) -> Number:
    """Return the number of an item, or of each of several, which ascends by sequence and position.

    Examples
    --------
    >>> item_number(2, 7), divmod(2055, STRIDE)
    (2055, (2, 7))
    """
    return sequence * STRIDE + position


class SlateItem(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model predicted for an item of a slate."""

    video_id: Id
    """The video."""
    score: float
    """The learner's score; a positive label is predicted above 0. With logistic loss, the log-odds."""
    probability: Probability | None
    """Probability that the label is positive; null if the loss gives none."""
    predicted: bool
    """Whether the score is above 0."""
    features: Features
    """The item's features at the time of the prediction, in their order."""
    challengers: Scores | None = None
    """The score of each challenger, by its name. Absent if there are none."""
    asked: bool | None = None
    """Whether its label is asked for in `label-requests`. Absent where all are learned as they come."""

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids that the item has of its own."""
        return (self.video_id,)

    @property
    def carried(self) -> Carried:
        """The numbers that it carries as the interaction has them; none where the stream has none."""
        return ()


class SlatePrediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What one model predicted for all items that were shown together, before any of their labels."""

    event_id: Id
    """Id of the event; the labels of its items have the same."""
    user_id: Id
    """The user."""
    timestamp: Timestamp
    """When the event happened: the interaction's timestamp."""
    items: Annotated[list[SlateItem], always(minItems=1, maxItems=MAX_ITEMS)]
    """The items in the order in which they were shown: that of the interaction. The first has position 0."""
    model_version: Count
    """Number of outcomes that the model had learned when it predicted."""
    sequence: Count
    """The prediction's number in its partition, from 0."""

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the message."""
        return (self.user_id,)


class Slates:
    """Makes predictions of items of a slate's record, and slates' records of items' columns.

    Parameters
    ----------
    record
        The type of the stream's slates.
    item
        The type of their items.
    prediction
        The type of the prediction of an item.
    item_entities
        The numbers of the entities that each item names.
    entities
        The number of entities.
    tables
        Whether records name up to where live tables were applied.
    """

    def __init__(
        self,
        record: type[SlatePrediction],
        item: type[SlateItem],
        prediction: type[Prediction],
        *,
        item_entities: Sequence[int],
        entities: int,
        tables: bool,
    ) -> None:
        self.record = record
        self.item = item
        self.decoder = msgspec.json.Decoder(record)
        self._prediction: Any = prediction
        self._own = [*item_entities]
        self._of_message = [number for number in range(entities) if number not in item_entities]
        order = [*self._of_message, *self._own]
        self._in_order = _picker([order.index(number) for number in range(entities)])
        self._tables = tuple_getter(["tables"] if tables else [])

    def expand(self, slate: SlatePrediction) -> list[Prediction]:
        """Return the prediction of each item, in their order."""
        ids, tables = slate.ids, self._tables(slate)
        return [
            self._prediction(
                slate.event_id,
                *self._in_order((*ids, *item.ids)),
                slate.timestamp,
                item.score,
                item.probability,
                item.predicted,
                item.features,
                *tables,
                *item.carried,
                slate.model_version,
                position,
                slate.sequence,
                item.challengers,
                item.asked,
            )
            for position, item in enumerate(slate.items)
        ]

    def join(self, predictions: Sequence[Prediction]) -> SlatePrediction:
        """Return the record of the predictions of all items of a slate: the inverse of `expand`."""
        first = predictions[0]
        items = [
            self.make_item(
                each.ids,
                each.score,
                each.probability,
                each.predicted,
                each.features,
                *each.carried,
                each.challengers,
                each.asked,
            )
            for each in predictions
        ]
        [tables] = self._tables(first) or [None]
        return self.make(
            first.event_id, first.ids, first.timestamp, items, tables, first.model_version, first.sequence
        )

    def id_of(self, record: SlatePrediction, entity: int) -> Id:
        """Return the id of an entity that the message names."""
        return record.ids[self._of_message.index(entity)]

    def make_item(self, ids: Sequence[Id], *fields: Any) -> SlateItem:
        """Return an item, given the ids of all entities and its fields behind the ids."""
        made: SlateItem = cast(Any, self.item)(*(ids[number] for number in self._own), *fields)
        return made

    def make(  # noqa: PLR0917 - the fields of a record
        self,
        event_id: Id,
        ids: Sequence[Id],
        timestamp: int,
        items: list[SlateItem],
        tables: dict[str, int] | None,
        model_version: int,
        sequence: int,
    ) -> SlatePrediction:
        """Return a record, given the ids of all entities; `tables` is None without live tables."""
        own = (ids[number] for number in self._of_message)
        applied = () if tables is None else (tables,)
        made: SlatePrediction = cast(Any, self.record)(
            event_id, *own, timestamp, items, *applied, model_version, sequence
        )
        return made


def _picker(places: Sequence[int]) -> Callable[[tuple[Id, ...]], tuple[Id, ...]]:
    """Return what picks these places of a tuple, at least one."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda ids: ids
