"""Encode records as JSON, and ids as message keys.

Both msgspec and orjson write floats in their shortest exact form, so that reading them back gives the same
bits. Hot records, one for each message, are written by msgspec, and all else by orjson.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import orjson

from pipeline.records.fields import Id

_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def encode_json(value: object) -> bytes:
    """Encode what is not a hot record: state records, reports and answers to scripts.

    Parameters
    ----------
    value
        Built-in objects, msgspec structs and dataclasses.

    Returns
    -------
    bytes
        The JSON that `encode` gives, except that floats of 1e16 and more have a sign in their exponent, as in
        1e+16. State records hold no floats.

    Examples
    --------
    >>> encode_json({"offset": 7, "mean": 0.1})
    b'{"offset":7,"mean":0.1}'
    """
    return orjson.dumps(msgspec.to_builtins(value, str_keys=True))


def keys_of(ids: Sequence[Id]) -> list[bytes]:
    r"""Return the keys of messages that are made of these ids: their text, in UTF-8.

    Examples
    --------
    >>> keys_of([7, "Zoë"])
    [b'7', b'Zo\xc3\xab']
    """
    encoded = _encoder.encode_lines(ids)
    if b'"' in encoded:  # only an integer is encoded as its text
        return [str(each).encode() for each in ids]
    return encoded.split(b"\n")[:-1]


def encode_all(records: Iterable[object]) -> list[bytes]:
    """Do as `encode` with each record, at less cost: the only line feeds are those between two records."""
    values = _encoder.encode_lines(list(records)).split(b"\n")
    values.pop()
    return values
