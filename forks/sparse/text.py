"""Words of a text, and n-grams of its characters, as hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from zlib import crc32

_WORD: Final = re.compile(r"\w+")
_FIRST: Final = 1.0
"""Stands for the hash 0, which means that there is no word."""


def words_of(text: str, ngram: int | None = None) -> Iterator[str]:
    """Yield the words of a text, or its n-grams, as often as they stand there.

    The text is lower-cased by `str.casefold`. A word is a run of letters, digits and underscores. N-grams are
    those of the words one blank apart, with one more blank at each end.

    Parameters
    ----------
    text
        Any text.
    ngram
        Characters of an n-gram; None for words. A text with fewer is one n-gram, if it has any word.

    Examples
    --------
    >>> list(words_of("Win a prize, WIN!")), list(words_of("Hi you", 4))
    (['win', 'a', 'prize', 'win'], [' hi ', 'hi y', 'i yo', ' you', 'you '])
    """
    found = (match.group() for match in _WORD.finditer(text.casefold()))
    if ngram is None:
        yield from found
        return
    joined = f" {' '.join(found)} "
    if joined.strip():
        for begin in range(max(1, len(joined) - ngram + 1)):
            yield joined[begin : begin + ngram]


def word(value: str, field: str) -> float:
    """Return the hash of a word of a field, a whole number from 1 to 2^32 - 1, as columns hold it.

    Examples
    --------
    >>> word("win", "title"), word("win", "title") == word("win", "body")
    (3692329467.0, False)
    """
    start = crc32(field.encode("utf-8", "surrogatepass"))
    return float(crc32(value.encode("utf-8", "surrogatepass"), start)) or _FIRST


def word_hashes(text: str, field: str, most: int, ngram: int | None = None) -> list[float]:
    """Return hashes of the first words of a text that are different, as columns hold them.

    Parameters
    ----------
    text
        Any text.
    field
        Name of the field. The same word of another field has another hash.
    most
        Length of the list. Further words have no weight.
    ngram
        Characters of an n-gram; None for words.

    Returns
    -------
    list of float
        Whole numbers below 2^32, and 0 behind the last.

    Examples
    --------
    >>> word_hashes("To be, or not to be", "title", 6)
    [256946832.0, 4078825049.0, 3311408595.0, 1692123128.0, 0.0, 0.0]
    """
    found = dict[float, None]()
    for each in words_of(text, ngram):
        found.setdefault(word(each, field))
        if len(found) == most:
            break
    return [*found, *[0.0] * (most - len(found))]
