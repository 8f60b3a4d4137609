"""Ask one broker which ACLs it knows: clients cannot choose whom they ask.

A broker answers from its own copy of the metadata, which others may have before it.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple

DESCRIBE_ACLS: Final = 29
VERSION: Final = 1
ANY: Final = 1
"""Of resource types, patterns, operations and permissions."""
TIMEOUT: Final = 10.0
"""Seconds for an answer."""


class Acl(NamedTuple):
    """What a principal is allowed, in the numbers of the protocol."""

    resource: int
    name: str
    pattern: int
    operation: int


class _Answer:
    """Reads the fields of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        [value] = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def text(self) -> str:
        size = max(0, self.number("h"))
        self._at += size
        return self._data[self._at - size : self._at].decode()


def acls_at(port: int, principal: str) -> set[Acl]:
    """Return what a broker at a port of this machine knows of a principal, such as `User:forks`."""
    name = principal.encode()
    body = struct.pack(">bhbh", ANY, -1, ANY, len(name)) + name + struct.pack(">hbb", -1, ANY, ANY)
    request = struct.pack(">hhih", DESCRIBE_ACLS, VERSION, 7, -1) + body
    with socket.create_connection(("localhost", port), TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            [size] = struct.unpack(">i", stream.read(4))
            answer = _Answer(stream.read(size))
    assert answer.number("i") == 7  # the request's
    answer.number("i")  # milliseconds of a throttle
    error, message = answer.number("h"), answer.text()
    assert error == 0, message
    found = set[Acl]()
    for _ in range(answer.number("i")):
        resource, name_of, pattern = answer.number("b"), answer.text(), answer.number("b")
        for _ in range(answer.number("i")):
            answer.text(), answer.text()  # principal and host
            found.add(Acl(resource, name_of, pattern, answer.number("b")))
            answer.number("b")  # allowed
    return found
