"""Which features a stream has, by name and place: its definition, with the defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from forks.sparse.settings import MOST_FIELDS, MOST_WORDS
from pipeline.config.sparse_layout import SparseLayout, score_names
from pipeline.config.stream import PAIRS, Stream, entity_word
from pipeline.config.stream_features import (
    EventFeature,
    LiveTable,
    NumberFeature,
    RunningFeature,
    RunningTable,
    TextFeature,
    TimeFeature,
    VectorFeature,
    is_sparse,
)
from pipeline.config.target_settings import RegressionSettings

FeatureKind: TypeAlias = Literal["effects", "running"]
"""Kinds of running features, for streams whose definition does not say which there are."""
EFFECTS_LOGIT: Final = "effects_logit"
"""The feature that the effects of two entities come to."""
KNOWN: Final = "known"
"""The feature that says whether a table has a row for an entity."""
TAGS: Final = "tag"
"""What features lean on that lean on the tags of the second entity."""

MEANS: Final[tuple[RunningFeature, ...]] = ("label_mean", "label_logit", "value_mean", "log_count")
"""The features of a table, by default."""
ADJUSTED: Final[tuple[RunningFeature, ...]] = ("label_mean", "effect", "noise", "log_count")
"""The features of a table whose effects are adjusted, by default."""
RECENT: Final[tuple[RunningFeature, ...]] = ("recent_label_mean", "recent_value_mean", "log_since_last")
"""What a half-life adds to these."""
RESERVED_TABLES: Final = ("tags", "examples", "effects")
"""What stands beside tables in snapshots and shares."""
LEANING: Final[tuple[RunningFeature, ...]] = ("leaning_label_mean", "leaning_value_mean")
"""What another table to lean on adds to these."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table's key."""

    entity: bool
    """Whether it is an entity, or a category or a number of the message."""
    place: int
    """The number of the entity, or the place of the category among the features of messages
    and tables."""
    bins: Literal["number", "logarithm"] | None = None
    """For a number, which counts by its bin, whether the feature is its logarithm; None for a category."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Running statistics by an entity, by a category, by a number in bins, or by a pair of these."""

    name: str
    """The name of its entries in snapshots, shares and gauges, such as `users`."""
    word: str
    """What begins the names of its features, such as `user`."""
    parts: tuple[Part, ...]
    """What its key consists of."""
    features: tuple[RunningFeature, ...]
    """Its features, in their order."""
    leans_on: int | None
    """The number of the table that leaning means lean on; None for tags."""
    half_life: int | None
    """Milliseconds after which an event counts half in the recent means; None without such."""
    shared: bool
    """Whether events of the same key may be in several partitions, which then tell each other."""


@dataclass(frozen=True, slots=True)
class FeatureLayout:
    """The features of a stream.

    Attributes
    ----------
    tables
        The running statistics.
    effects
        Numbers of the two tables whose effects are adjusted for one another; None for none.
    running_names
        Names of the running features, in the order in which predictions carry them.
    event_names
        Names of the features of messages, which follow them.
    table_names
        Names of the features of tables, which come last.
    sparse
        What the learner's sparse part has of them, with its scores at the end of the running features; None
        without categories and texts.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> layout = FeatureLayout.of(KUAIREC)
    >>> [table.name for table in layout.tables], len(layout.names)
    (['users', 'videos'], 10)
    >>> layout.names[:4]
    ('user_label_mean', 'user_effect', 'user_noise', 'user_log_count')
    """

    tables: tuple[TableLayout, ...]
    effects: tuple[int, int] | None
    running_names: tuple[str, ...]
    event_names: tuple[str, ...]
    table_names: tuple[str, ...] = ()
    sparse: SparseLayout | None = None

    @classmethod
    def of(cls, stream: Stream, kind: FeatureKind = "effects") -> FeatureLayout:
        """Return the features of a stream.

        Parameters
        ----------
        stream
            Its definition.
        kind
            The kind of the running features, for a definition that does not say which there are. There are
            as many of either kind. A regression target has those of `effects`, with means of values.

        Raises
        ------
        ValueError
            Two features or two tables would have the same name, or there are no features.
        """
        declared, effects = _declared(stream, kind)
        event_names = [name for each in stream.features for name in names_of(each, stream.features[each])]
        table_names = [name for each in stream.tables for name in table_names_of(each, stream.tables[each])]
        numbers = {name: number for number, name in enumerate(declared)}
        tables = tuple(
            _table(name, table, stream, event_names + table_names, numbers, effects)
            for name, table in declared.items()
        )
        names = [
            _name(table.word, feature, TAGS if table.leans_on is None else tables[table.leans_on].word)
            for table in tables
            for feature in table.features
        ]
        pair = None
        if effects is not None:
            pair = numbers[effects[0]], numbers[effects[1]]
            names.append(EFFECTS_LOGIT)
        sparse = _sparse(stream, names, [*event_names, *table_names])
        if sparse is not None:
            names += sparse.scores
        _refuse_same_names([*names, *event_names, *table_names], [table.name for table in tables])
        return cls(tables, pair, tuple(names), tuple(event_names), tuple(table_names), sparse)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features, in the order in which predictions carry them."""
        return self.running_names + self.event_names + self.table_names

    @property
    def shared(self) -> tuple[int, ...]:
        """The numbers of the tables that partitions share."""
        return tuple(number for number, table in enumerate(self.tables) if table.shared)

    @property
    def shared_effects(self) -> int | None:
        """The number of the table whose effects partitions share; None for none."""
        return self.effects[1] if self.effects and self.tables[self.effects[1]].shared else None


def _sparse(stream: Stream, running: Sequence[str], others: Sequence[str]) -> SparseLayout | None:
    """Return what the sparse part has of a stream with these running and further features."""
    every = [*stream.features.items(), *stream.table_features()]
    fields = [name for name, each in every if is_sparse(each)]
    texts = [names_of(name, each) for name, each in every if isinstance(each, TextFeature)]
    words = [name for names in texts for name in names]
    if not (fields or words):
        return None
    numbers = [name for name, each in every if isinstance(each, NumberFeature)]
    for found, noun, most in (
        (fields, "categories without columns", MOST_FIELDS),
        (numbers, "numbers beside categories", MOST_FIELDS),
        (words, "words of texts", MOST_WORDS),
    ):
        if len(found) > most:
            raise ValueError(f"features have {len(found)} {noun}, {most} at most")
    pairs, crosses = _crosses(stream, fields, len(words), numbers)
    scores, seen = score_names(len(numbers), crosses=pairs or bool(crosses))
    first = len(running) + len(scores)
    base = None if EFFECTS_LOGIT not in running or _is_regression(stream) else running.index(EFFECTS_LOGIT)
    return SparseLayout(
        tuple(first + others.index(name) for name in fields),
        tuple(first + others.index(name) for name in words),
        tuple(first + others.index(name) for name in numbers),
        pairs,
        crosses,
        len(running),
        base,
        scores,
        seen,
    )


def _crosses(
    stream: Stream, fields: Sequence[str], words: int, numbers: Sequence[str]
) -> tuple[bool, tuple[tuple[int, ...], ...]]:
    """Return whether all pairs are crossed, and what else is: places among fields, words and numbers."""
    if isinstance(stream.crosses, str):
        return stream.crosses == PAIRS, ()
    places = {name: place for place, name in enumerate(fields)}
    places |= {name: len(fields) + words + place for place, name in enumerate(numbers)}
    found = []
    for cross in stream.crosses:
        if cross == PAIRS:
            continue
        for name in cross:
            if name not in places:
                raise ValueError(
                    f"crosses name {name}, which is no feature that can be crossed: there are "
                    f"{', '.join(places) or 'none'}; declare an id or an hour as a feature of its own"
                )
        if len({*cross}) < len(cross):
            raise ValueError(f"crosses name {' and '.join(cross)}, one of them twice")
        found.append(tuple(sorted(places[name] for name in cross)))
    return PAIRS in stream.crosses, tuple(dict.fromkeys(found))


def _refuse_same_names(features: Sequence[str], tables: Sequence[str]) -> None:
    if not features:
        raise ValueError("the stream has no features: name entities, or features of its messages")
    for names, noun in ((features, "features"), ((*RESERVED_TABLES, *tables), "tables")):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"there would be two {noun} called {twice[0]}: take another name")


def names_of(name: str, feature: EventFeature) -> list[str]:
    """Return the names of the numbers that a feature of messages consists of.

    Examples
    --------
    >>> names_of("pace", VectorFeature(kind="vector", field="/pace", length=2))
    ['pace_0', 'pace_1']
    """
    if isinstance(feature, VectorFeature):
        return [f"{name}_{number}" for number in range(feature.length)]
    if isinstance(feature, NumberFeature) and feature.indicator:
        return [name, f"{name}_missing"]
    if isinstance(feature, TextFeature):
        return [f"{name}_{number}" for number in range(feature.words)]
    if isinstance(feature, TimeFeature) and feature.encoding == "cyclic":
        return [f"{name}_sin", f"{name}_cos"]
    return [name]


def table_names_of(name: str, table: LiveTable) -> list[str]:
    """Return the names of the numbers that a table gives: whether it has a row, then its features.

    Examples
    --------
    >>> price = {"kind": "number", "field": "/price"}
    >>> table_names_of("items", LiveTable(topic="items", entity="item", features={"price": price}))
    ['items_known', 'items_price']
    """
    features = [f"{name}_{each}" for key in table.features for each in names_of(key, table.features[key])]
    return [f"{name}_{KNOWN}", *features]


def _declared(stream: Stream, kind: FeatureKind) -> tuple[Mapping[str, RunningTable], tuple[str, str] | None]:
    """Return the running statistics of a stream by name, and the two whose effects are adjusted."""
    if stream.running is not None:
        return stream.running, stream.effects
    names = [*stream.entities]
    declared = {name: RunningTable() for name in names}
    if len(names) < 2:
        return declared, None
    if _is_regression(stream):
        return declared, (names[0], names[1])
    if kind == "effects":
        declared[names[1]] = RunningTable(features=(*ADJUSTED, "leaning_value_mean"))
        return declared, (names[0], names[1])
    declared[names[1]] = RunningTable(features=(*MEANS, *LEANING))
    return declared, None


def _part(name: str, stream: Stream, event_names: list[str]) -> Part:
    if name in stream.entities:
        return Part(True, [*stream.entities].index(name))
    feature = (stream.features | dict(stream.table_features()))[name]
    bins: Literal["number", "logarithm"] | None = None
    if isinstance(feature, NumberFeature):
        bins = "logarithm" if feature.log else "number"
    return Part(False, event_names.index(name), bins)


def _table(  # noqa: PLR0917 - what a definition says
    name: str,
    table: RunningTable,
    stream: Stream,
    event_names: list[str],
    numbers: Mapping[str, int],
    effects: tuple[str, str] | None,
) -> TableLayout:
    parts = tuple(_part(part, stream, event_names) for part in table.of or (name,))
    features = table.features
    if features is None:
        features = ADJUSTED if name in (effects or ()) else MEANS
        features += LEANING if table.leans_on is not None else ()
        features += RECENT if table.half_life is not None else ()
        if _is_regression(stream):
            features = _of_values(features)
    word, key = entity_word(name), stream.key_entity
    return TableLayout(
        f"{word}s",
        word,
        parts,
        features,
        None if table.leans_on is None else numbers[table.leans_on],
        table.half_life,
        key is None or Part(True, key) not in parts,
    )


def _is_regression(stream: Stream) -> bool:
    return isinstance(stream.target, RegressionSettings)


def _of_values(features: Sequence[RunningFeature]) -> tuple[RunningFeature, ...]:
    """Return features with means of values in place of those of labels, and without logits: each once."""
    of_values: dict[RunningFeature, RunningFeature] = {
        "label_mean": "value_mean",
        "leaning_label_mean": "leaning_value_mean",
        "recent_label_mean": "recent_value_mean",
    }
    kept = (of_values.get(feature, feature) for feature in features if feature != "label_logit")
    return tuple(dict.fromkeys(kept))


def _name(word: str, feature: RunningFeature, lean: str) -> str:
    if feature.startswith("leaning_"):
        return f"{word}_{lean}{feature.removeprefix('leaning')}"
    return f"{word}_{feature}"
