"""Why a score is what it is: its exact split into terms of entities, message, bias and kernel part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from forks import Forks
from pipeline.config.feature_layout import TableLayout
from pipeline.config.stream import entity_word
from pipeline.features.effect_arrays import ITEM_EFFECT, USER_EFFECT
from pipeline.features.feature_set import FeatureSet
from pipeline.model.columns import InteractionLike
from pipeline.model.contexts import ContextLayout
from pipeline.model.model import Model
from pipeline.records.inputs import Interaction
from pipeline.truncate import truncate

TermKind: TypeAlias = Literal[
    "entity",
    "table",
    "static",
    "message",
    "category",
    "categories",
    "bias",
    "kernel",
    "clipping",
    "mixture",
    "learner",
]
Owner: TypeAlias = tuple[TermKind, str]
"""What the term of a feature belongs to."""

EFFECTS: Final = None
"""In place of an owner: the two entities whose effects the feature comes of."""
MOST_VALUES: Final = 10
"""Values of categories and words, and pairs of them, that are named."""
SMALL_SUM: Final = 1e-3
"""Two effects that come to less than this are not told apart: they are known to six decimals."""


class Term(NamedTuple):
    """A part of a score."""

    kind: TermKind
    """`entity`, a `table` of running statistics that is of no single entity, `static` columns, the `message`
    itself, a value of a `category` or a word or a pair of them, what further scores of `categories` add, a
    part of the learner, or the whole `learner`, if it has no such parts."""
    name: str
    """What the entity, table or learner is called; else the kind."""
    value: float


def score_terms(
    model: Model, interaction: InteractionLike, features: Sequence[float], challenger: str | None = None
) -> tuple[float, list[Term]]:
    """Return the model's score of an interaction with these features, and the terms that it is the sum of.

    What the linear part adds for a feature counts for the entity that the feature is of. What the effects of
    two entities come to together is split in proportion to both; the mean of all labels is a part of the
    first one's effect. The terms sum to the score but for rounding errors (below 1e-12 for scores below 100).

    Parameters
    ----------
    model
        The model, which does not change.
    interaction
        Its ids and its time.
    features
        Its features as the prediction carries them.
    challenger
        The challenger whose score it is; None for the champion's.

    Returns
    -------
    score
        With the bits of `Model.predict`.
    terms
        First those of the entities, last bias, kernel part, if the score was clipped, what that changed, and
        with a sparse part what mixing it with its scores changed.
    """
    x, learner = model.context(interaction, features), model.learner
    if challenger is not None:
        shadow = model.challengers[challenger]
        if not isinstance(shadow.learner, Forks):
            score = shadow.predict_one(x)
            return score, [Term("learner", challenger, score)]
        learner = shadow.learner
    explanation = learner.explain_one(x)
    parts: dict[Owner, list[float]] = {
        ("entity", entity_word(name)): [] for name in model.features.entity_names
    }
    shares = _effect_shares(model.features, features)
    owners = column_owners(model.features, model.tables.columns)
    values = explanation.columns.tolist()
    if (column := learner.settings.offset_column) is not None:
        owners.append(owners[column])
        values.append(explanation.offset)
    for owner, value in zip(owners, values, strict=True):
        if not value:
            continue
        if owner is not EFFECTS:
            parts.setdefault(owner, []).append(value)
            continue
        first, share, second = shares
        parts.setdefault(first, []).append(share * value)
        parts.setdefault(second, []).append(value - share * value)
    terms = [Term(*owner, math.fsum(each)) for owner, each in parts.items()]
    terms += [Term("bias", "bias", explanation.bias), Term("kernel", "kernel", explanation.kernel)]
    if explanation.clipping:
        terms.append(Term("clipping", "clipping", explanation.clipping))
    if challenger is not None or model.sparse is None:
        return explanation.score, terms
    terms = [*_named_values(model, interaction, features, terms)]
    score = model.predict_score(interaction, features)
    terms.append(Term("mixture", "mixture", score - explanation.score))
    return score, terms


def _named_values(
    model: Model, interaction: InteractionLike, features: Sequence[float], terms: Sequence[Term]
) -> Iterator[Term]:
    """Yield the terms, with the largest weights of values taken out of that of all categories."""
    names = _input_names(model.features, interaction)
    assert model.sparse is not None
    values = dict[str, float]()
    for places, value in model.sparse.weights_of(np.array(features)):
        name = " x ".join(names[place] for place in places)
        values[name] = values.get(name, 0.0) + value
    largest = sorted(values.items(), key=lambda each: -abs(each[1]))[:MOST_VALUES]
    for term in terms:
        if term.kind != "categories":
            yield term
            continue
        yield from (Term("category", name, value) for name, value in largest)
        yield term._replace(value=math.fsum([term.value, *(-value for _, value in largest)]))


def _input_names(features: FeatureSet, interaction: InteractionLike) -> list[str]:
    """Return what the inputs of the sparse part are called: the field, with its value if it is known."""
    layout, texts = features.layout.sparse, features.event.texts(cast(Interaction, interaction))
    assert layout is not None
    found = []
    for place in (*layout.fields, *layout.words, *layout.numbers):
        name = features.names[place]
        text = texts.get(name)
        name = name.rpartition("_")[0] if place in layout.words else name
        found.append(name if text is None else f"{name} = {truncate(text)}")
    return found


def column_owners(features: FeatureSet, static_columns: int) -> list[Owner | None]:
    """Return what each column of a context vector belongs to; `EFFECTS` for the column of both effects.

    Examples
    --------
    >>> from pipeline.features.feature_set import KUAIREC_FEATURES
    >>> owners = column_owners(KUAIREC_FEATURES, 1)
    >>> owners[0], owners[1], owners[-2], owners[-1]
    (('static', 'static'), ('entity', 'user'), ('entity', 'video'), None)
    """
    words = [entity_word(name) for name in features.entity_names]
    of_features: list[Owner | None] = [
        _owner(table, words) for table in features.layout.tables for _ in table.features
    ]
    if features.layout.effects is not None:
        of_features.append(EFFECTS)
    if (sparse := features.layout.sparse) is not None:
        of_features += [("categories", "categories")] * len(sparse.scores)
    of_features += [("message", "message")] * len(features.event.names)
    for table in features.tables:
        of_features += [("entity", words[table.entity])] * len(table.names)
    layout = ContextLayout.of(static_columns, features)
    owners: list[Owner | None] = [("static", "static")] * static_columns
    ends = [*(first for _, first in layout.categories[1:]), layout.first_running]
    for (place, first), end in zip(layout.categories, ends, strict=False):
        owners += [of_features[place]] * (end - first)
    return owners + [of_features[place] for place in layout.others]


def _owner(table: TableLayout, words: Sequence[str]) -> Owner:
    [part, *others] = table.parts
    return ("entity", words[part.place]) if part.entity and not others else ("table", table.word)


def _effect_shares(features: FeatureSet, values: Sequence[float]) -> tuple[Owner, float, Owner]:
    """Return the owner of the first effect, its share of what both come to, and the owner of the rest."""
    if features.layout.effects is None:  # and so no column of both
        return ("message", "message"), 1.0, ("message", "message")
    words = [entity_word(name) for name in features.entity_names]
    first, second = (_owner(features.layout.tables[number], words) for number in features.layout.effects)
    own, other = (values[features.effect_columns[place]] for place in (USER_EFFECT, ITEM_EFFECT))
    if abs(own + other) < SMALL_SUM:
        both: Owner = ("table", f"{first[1]} and {second[1]}")
        return both, 1.0, both
    return first, own / (own + other), second


def warm_up_explaining(model: Model) -> None:
    """Compile what explaining a score calls, with a model that has seen nothing and is thrown away."""
    nothing = np.zeros(model.learner.settings.dimension)
    model.learner.learn_one(nothing, 1.0)
    model.learner.explain_one(nothing)
    model.learner.nearest_one(nothing, 1)
    if model.sparse is not None:
        model.sparse.weights_of(np.zeros(len(model.features)))
