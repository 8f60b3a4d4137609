"""The features of a stream, and how they are made of what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.config.feature_layout import EFFECTS_LOGIT, FeatureKind, FeatureLayout, TableLayout
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.stream_features import RunningFeature
from pipeline.features import totals
from pipeline.features.effect_arrays import ITEM_EFFECT, USER_EFFECT
from pipeline.features.event_features import EventFeatures
from pipeline.features.live_tables import TableFeatures, tables_of

_CODES: Final[Mapping[RunningFeature, int]] = MappingProxyType(
    {
        "label_mean": totals.LABEL_MEAN,
        "label_logit": totals.LABEL_LOGIT,
        "value_mean": totals.VALUE_MEAN,
        "log_count": totals.LOG_COUNT,
        "leaning_label_mean": totals.LEANING_LABEL_MEAN,
        "leaning_value_mean": totals.LEANING_VALUE_MEAN,
        "recent_label_mean": totals.RECENT_LABEL_MEAN,
        "recent_value_mean": totals.RECENT_VALUE_MEAN,
        "recent_residual": totals.RECENT_RESIDUAL,
        "log_recent_count": totals.LOG_RECENT_COUNT,
        "log_since_last": totals.LOG_SINCE_LAST,
        "effect": totals.ELSEWHERE,
        "noise": totals.ELSEWHERE,
    }
)


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """The features of a stream.

    Attributes
    ----------
    kind
        The kind of the running features, for a stream whose definition does not say which there are.
    declared
        Whether the stream's definition says which running features there are, whatever the kind.
    layout
        Their names and places.
    event
        The features of messages.
    tables
        The live tables, whose features follow those.
    entity_names
        The names of the entities.
    key_entity
        The number of the entity whose id is the messages' key; None for the event's id.
    item_entities
        The numbers of the entities that each item of a slate names; empty where there are no slates.
    codes : ndarray, shape (running features, 3), int64
        Of each running feature what it is, the number of its totals, and of those that it leans on: see
        `pipeline.features.totals.make_running_features`.
    effect_columns
        Places of the features of `pipeline.features.effects`; empty without effects.

    Examples
    --------
    >>> features = FeatureSet.of(KUAIREC)
    >>> len(features), features.effect_columns, features.places("label_mean")
    (10, (1, 2, 5, 6, 9), [0, 4])
    """

    kind: FeatureKind
    declared: bool
    layout: FeatureLayout
    event: EventFeatures
    tables: tuple[TableFeatures, ...]
    entity_names: tuple[str, ...]
    key_entity: int | None
    item_entities: tuple[int, ...]
    codes: NDArray[np.int64]
    effect_columns: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.layout.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features, in the order in which predictions carry them."""
        return self.layout.names

    @property
    def entities(self) -> int:
        """The number of entities."""
        return len(self.entity_names)

    @property
    def running(self) -> int:
        """The number of running features."""
        return len(self.layout.running_names)

    @property
    def offset_column(self) -> int | None:
        """The place of what the learner's scores are added to.

        It is the mixture of the sparse part's scores, or what the effects come to; None without either.
        """
        if self.layout.sparse is not None:
            return self.layout.sparse.mixture
        return self.effect_columns[-1] if self.effect_columns else None

    @property
    def own(self) -> slice:
        """Where the features are that a message has by itself."""
        return slice(self.running, self.running + len(self.event.names))

    @property
    def categories(self) -> tuple[tuple[int, int], ...]:
        """Of each category that has columns, its place among all features and their number."""
        found = [(self.own.start + place, columns) for place, columns in self.event.categories]
        begin = self.own.stop
        for table in self.tables:
            found += [(begin + place, columns) for place, columns in table.categories]
            begin += len(table.names)
        return tuple(found)

    def expected_signals(self, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the signals that effects expected of events with these features; None without effects.

        Parameters
        ----------
        features
            The features as predictions carry them, shape (n, features).
        """
        if not self.effect_columns:
            return None
        user, item = self.effect_columns[USER_EFFECT], self.effect_columns[ITEM_EFFECT]
        expected: NDArray[np.float64] = features[:, user] + features[:, item]
        return expected

    def places(self, feature: RunningFeature) -> list[int]:
        """Return the places of a feature of all tables, in their order."""
        every = [each for table in self.layout.tables for each in table.features]
        return [place for place, each in enumerate(every) if each == feature]

    @staticmethod
    def of(stream: Stream, kind: FeatureKind = "effects") -> FeatureSet:
        """Return the features of a stream, made once.

        Parameters
        ----------
        stream
            Its definition.
        kind
            The kind of the running features, for a definition that does not say which there are.
        """
        key = stream.model_dump_json(), kind
        if key not in _made:
            _made[key] = _make(stream, kind)
        return _made[key]


_made: Final[dict[tuple[str, FeatureKind], FeatureSet]] = {}


def _make(stream: Stream, kind: FeatureKind) -> FeatureSet:
    layout = FeatureLayout.of(stream, kind)
    names, columns = layout.running_names, list[int]()
    codes = [
        (_CODES[feature], totals.FIRST_TABLE + number, _leans_on(table))
        for number, table in enumerate(layout.tables)
        for feature in table.features
    ]
    if layout.effects is not None:
        codes.append((totals.ELSEWHERE, totals.EVERYTHING, totals.EVERYTHING))
        words = (layout.tables[number].word for number in layout.effects)
        wanted = [f"{word}_{part}" for word in words for part in ("effect", "noise")]
        columns = [names.index(name) for name in (*wanted, EFFECTS_LOGIT)]
    codes += [(totals.ELSEWHERE, totals.EVERYTHING, totals.EVERYTHING)] * (len(names) - len(codes))
    return FeatureSet(
        kind,
        stream.running is not None,
        layout,
        EventFeatures.of(stream),
        tables_of(stream),
        tuple(stream.entities),
        stream.key_entity,
        stream.item_entities,
        np.array(codes, dtype=np.int64).reshape(len(names), 3),
        tuple(columns),
    )


def _leans_on(table: TableLayout) -> int:
    return totals.TAGS if table.leans_on is None else totals.FIRST_TABLE + table.leans_on


def columns_of(table: TableLayout) -> int:
    """Return how many columns the totals of a table need: see `pipeline.features.totals`."""
    if "recent_residual" in table.features:
        return totals.RESIDUAL_COLUMNS
    if table.half_life is not None:
        return totals.RECENT_COLUMNS
    return totals.TIMED_COLUMNS if "log_since_last" in table.features else totals.BASE_COLUMNS


KUAIREC_FEATURES: Final = FeatureSet.of(KUAIREC)
"""The features of KuaiRec's stream."""
EFFECTS: Final = KUAIREC_FEATURES.names
"""The names of KuaiRec's features of the kind `effects`."""
RUNNING: Final = FeatureSet.of(KUAIREC, "running").names
"""The same of the kind `running`: means and counts are at the same places."""
FEATURES: Final[Mapping[FeatureKind, tuple[str, ...]]] = MappingProxyType(
    {"effects": EFFECTS, "running": RUNNING}
)
"""Names of KuaiRec's running features by kind."""
