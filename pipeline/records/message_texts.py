"""Keys and values of messages, in one buffer each."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import NamedTuple

from pipeline.records.inputs import KafkaMessage, with_headers
from pipeline.records.texts import Integers, Texts, joined_texts
from pipeline.records.words import SPARE

key_of, value_of, headers_of = methodcaller("key"), methodcaller("value"), methodcaller("headers")


class MessageTexts(NamedTuple):
    """Keys and values of messages, one behind the other. What is null is empty."""

    keys: Texts
    values: Texts
    """With `SPARE` zeros behind them."""
    sizes: Integers
    """Those of key, value and headers, in bytes, shape (n,)."""

    @classmethod
    def of(cls, messages: Sequence[KafkaMessage]) -> MessageTexts:
        """Return those of messages, whatever they are made of."""
        values = joined_texts([*map(value_of, messages)], SPARE)
        return cls.sized(joined_texts([*map(key_of, messages)]), values, [*map(headers_of, messages)])

    @classmethod
    def sized(cls, keys: Texts, values: Texts, headers: Sequence[object] = ()) -> MessageTexts:
        """Return keys and values with the sizes of the messages; no headers if none has any."""
        bare = values.ends - values.begins + keys.ends - keys.begins
        return cls(keys, values, with_headers(bare, headers))
