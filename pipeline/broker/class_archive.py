"""Make the archive of the classes that a broker loads; with it, Java starts a broker in half the time."""

from __future__ import annotations

from functools import partial
from signal import SIGTERM

from rich.console import Console

from pipeline.broker.folder_lock import locked
from pipeline.broker.guarded import guarded_broker
from pipeline.broker.launch import java_program, prepare
from pipeline.errors import BrokerError, ConfigError


def ensure_class_archive() -> None:
    """Make the archive unless this Java has one for these jars.

    A broker starts in a temporary folder for that, and Java writes the archive at its end. Without an archive
    brokers start all the same: why there is none is printed, and not tried again if Java is the cause.

    Raises
    ------
    ConfigError
        No suitable Java is installed, the cache folder for jars cannot be written, or a package of the extra
        `broker` is not installed.
    BrokerError
        A jar cannot be downloaded.
    """
    program = java_program()
    archive = program.archive
    if archive.exists():
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        with locked(archive.parent, "Java's class archive", "Name another folder with FORKS_CACHE_DIR."):
            if archive.exists():  # another process may have made it since the first look
                return
            console.print("Preparing a quicker start of Kafka, once; this takes some seconds ...")
            with guarded_broker(partial(prepare, make_archive=True), SIGTERM):
                pass
            if program.new_archive.exists():
                program.new_archive.replace(archive)
            else:
                archive.touch()
                console.print("Java wrote no class archive; each start of Kafka takes a second longer")
    except (BrokerError, ConfigError) as error:
        console.print(f"Kafka starts without a class archive: {error}", markup=False)
