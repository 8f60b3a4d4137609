"""The same job in another framework, as its own users would write it; its packages are never among ours."""

from bench.peers.comparison import run

__all__ = ["run"]
