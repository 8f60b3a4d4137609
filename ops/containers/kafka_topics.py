#!/usr/bin/env python3
"""Ask a broker whether it answers: the `kafka-topics.sh` of the stand-in, for the health check.

The jars that the embedded broker needs have no commands. It is copied into the image alone, so it imports
nothing of this project.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Final

API_VERSIONS: Final = struct.pack(">hhih", 18, 0, 1, -1)
"""The request for the versions of the protocol: its number and version, correlation 1, and no client id."""
TIMEOUT: Final = 5.0


def main() -> None:
    """End with 0 if the broker of `--bootstrap-server` answers."""
    host, port = sys.argv[sys.argv.index("--bootstrap-server") + 1].rsplit(":", 1)
    with socket.create_connection((host, int(port)), TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
        with connection.makefile("rb") as answer:
            _, correlation, error = struct.unpack(">iih", answer.read(10))
    sys.exit((correlation, error) != (1, 0))


if __name__ == "__main__":
    main()
