"""Events of which some features are text: what the adapters make rows of `forks.WideForks` from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forks.adapters.presets import PresetName, preset_settings
from forks.arrays import BoolArray, FloatArray
from forks.sparse import SparseSettings, word
from forks.wide import WideForks

WORDS: Final = 64
"""Words of an event that count, at most."""
Words: TypeAlias = list[str] | tuple[str, ...] | set[str] | frozenset[str]
Texts: TypeAlias = Mapping[Hashable, str | Words]
"""Features of an event that are text, by name: categories, and words."""


@dataclass(frozen=True)
class MixedFeatures:
    """Which features of events are categories; all other texts are words.

    Attributes
    ----------
    categories
        Their names, in the order of their places.

    Examples
    --------
    >>> mixed = MixedFeatures(("site",))
    >>> mixed.of({"site": "a", "title": ["to", "be"]})
    (['a'], [256946832.0, 4078825049.0])
    >>> mixed.of({"advert": "b"})  # a category that was not there at first is a word
    ([''], [3862480773.0])
    """

    categories: tuple[Hashable, ...]

    def of(self, texts: Texts) -> tuple[list[str], list[float]]:
        """Return an event's categories, of which those that it lacks are empty, and hashes of its words."""
        categories, words = [""] * len(self.categories), list[float]()
        places = {name: place for place, name in enumerate(self.categories)}
        for name in sorted(texts, key=str):
            value = texts[name]
            if isinstance(value, str) and name in places:
                categories[places[name]] = value
            else:
                words += [word(each, str(name)) for each in _each(value)]
        return categories, words


def is_text(value: object) -> bool:
    """Whether a feature is text: a category, or a collection of words.

    Examples
    --------
    >>> is_text("site 1"), is_text(["to", "be"]), is_text(1.0)
    (True, True, False)
    """
    if isinstance(value, list | tuple | set | frozenset):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, str)


def wide_learner(
    preset: PresetName, changes: Mapping[str, Any], categories: int, numbers: int, *, regression: bool
) -> WideForks:
    """Return a learner of events with so many categories and numbers, and up to `WORDS` words.

    Raises
    ------
    ValueError
        A setting is not accepted.
    """
    loss = "squared" if regression else "logistic"
    sparse = SparseSettings(fields=categories, words=WORDS, numbers=numbers, loss=loss)  # type: ignore[arg-type]
    defaults = WideForks.defaults(sparse) if preset == "practical" else {"loss": loss}
    settings = preset_settings(
        preset, WideForks.columns(sparse), defaults | dict(changes), regression=regression
    )
    return WideForks(sparse, settings)


def rows_of(
    learner: WideForks,
    mixed: MixedFeatures,
    texts: Sequence[Texts],
    numbers: FloatArray,
) -> FloatArray:
    """Return events as rows of a learner."""
    found = [mixed.of(each) for each in texts]
    return learner.rows([each for each, _ in found], [words for _, words in found], np.asarray(numbers))


def text_columns(X: ArrayLike) -> BoolArray:
    """Return which columns of a table hold text, shape (columns,).

    Examples
    --------
    >>> text_columns([["a", 1.0], [None, 2.0]]).tolist()
    [True, False]
    """
    table = _table(X)
    if table.dtype.kind == "O":
        return np.array([any(isinstance(value, str) for value in column) for column in table.T])
    return np.full(table.shape[1], table.dtype.kind == "U")


def table_rows(learner: WideForks, X: ArrayLike, texts: BoolArray) -> FloatArray:
    """Return the rows of a table, of which these columns are categories, as rows of a learner.

    Raises
    ------
    ValueError
        ``X`` has other columns, or a number that is none.
    """
    table = _table(X)
    if table.ndim != 2 or table.shape[1] != len(texts):
        raise ValueError(f"X must have shape (n, {len(texts)}), not {table.shape}")
    try:
        numbers = table[:, ~texts].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X has text in a column of numbers: {error}") from error
    return learner.rows(table[:, texts].tolist(), numbers=numbers)


def _table(X: ArrayLike) -> NDArray[Any]:
    """Return an array; the types of mixed lists and of data frames are kept."""
    found: NDArray[Any] = np.asarray(X)
    return found if found.dtype.kind != "U" or found is X else np.asarray(X, dtype=object)


def _each(value: str | Words) -> Iterable[str]:
    """Return the words of a feature; those of a set have no order of their own."""
    if isinstance(value, str):
        return (value,)
    return sorted(value) if isinstance(value, set | frozenset) else value
