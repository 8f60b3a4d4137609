"""An embedded broker that ends with a ``with`` block, even if the process is killed inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pipeline.broker.class_archive import ensure_class_archive
from pipeline.broker.guarded import guarded_broker
from pipeline.broker.launch import prepare
from pipeline.broker.settings import DEFAULT_HEAP


@contextmanager
def temporary_broker(heap: str = DEFAULT_HEAP) -> Iterator[str]:
    """Run Apache Kafka in a temporary folder inside the block.

    At the end of the block the broker is ended and the folder deleted, also if this process is killed inside
    the block.

    Parameters
    ----------
    heap : str
        The size of the Java heap, such as ``512m`` or ``2g``.

    Yields
    ------
    str
        The address of the broker, ``127.0.0.1:port``.

    Raises
    ------
    ConfigError
        The heap is not a size, the cache folder for jars cannot be written, or a package of the extra
        `broker` is not installed.
    BrokerError
        A jar cannot be downloaded, or the broker does not start.
    """
    ensure_class_archive()
    with guarded_broker(partial(prepare, heap=heap)) as bootstrap:
        yield bootstrap
