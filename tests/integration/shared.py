"""One broker for all processes of a test run."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.broker.available import available_broker


@contextmanager
def shared_broker(folder: Path) -> Iterator[str]:
    """Give the address of a broker that all processes share which name the same folder.

    The first process to ask starts it, and stops it when the last has left its block. The kernel releases
    the locks of a process that is killed. So nobody waits for it, and if it was the one that held the
    broker, the next process to ask starts another.

    Raises
    ------
    BrokerError
        The broker does not start.
    """
    address = folder / "broker-address"
    with (folder / "broker-users").open("a") as users, ExitStack() as held:
        with FileLock(folder / "broker-start.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)  # waits while a broker is being stopped
            try:
                held.enter_context(FileLock(folder / "broker-owner.lock", blocking=False))
            except Timeout:  # another process holds the broker
                pass
            else:
                address.write_text(held.enter_context(available_broker()))
                held.callback(fcntl.flock, users, fcntl.LOCK_EX)  # before it stops: waits for the others
        yield address.read_text()
