"""A pipeline for a benchmark: its configuration, its topics with invented plays, the broker's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final, Self

import psutil

from bench.recovery_worker import worker
from pipeline.broker.launch import MAIN_CLASS
from pipeline.config.loader import load
from pipeline.config.settings import Config
from pipeline.config.topics import Topics, topics_of
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from pipeline.sources.kuairec import Events, read_events, tables_beside
from pipeline.sources.replay import Replay
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size

USERS: Final = 2_000
VIDEOS: Final = 4_000


@dataclass(frozen=True)
class Deployment:
    """A pipeline that workers can be started for.

    Parameters
    ----------
    config : as in the file
    file : the workers' configuration: defaults, but for addresses and names, and the tables of the plays
    """

    config: Config
    file: Path

    @classmethod
    def create(
        cls,
        folder: Path,
        bootstrap: str,
        name: str,
        partitions: int = 1,
        *,
        input_prefix: str | None = None,
        more: str = "",
        replication: int = 1,
    ) -> Self:
        """Create the topics of a pipeline.

        Parameters
        ----------
        folder
            Where `invented` has put its tables, and the configuration goes.
        bootstrap
            The broker's address.
        name
            Of the pipeline: prefix and group come from it.
        partitions
            Of each topic.
        input_prefix
            That of the inputs, if another deployment has them.
        more
            Further sections of the configuration, as TOML.
        replication
            Replicas of each partition.
        """
        file = folder / f"{name}.toml"
        tables = "\n".join(f'{table} = "{path}"' for table, path in tables_beside(folder).items())
        inputs = "" if input_prefix is None else f'input_prefix = "{input_prefix}"\n'
        file.write_text(
            f'[kafka]\nbootstrap = "{bootstrap}"\nprefix = "{name}."\ngroup = "{name}"\n{inputs}'
            f"[features]\n{tables}\n{more}"
        )
        deployment = cls(load(file), file)
        create(Admin(deployment.config.kafka), deployment.topics, partitions, replication)
        return deployment

    def send(self, events: Events) -> None:
        """Write the interactions and labels of events, as fast as it goes."""
        Replay(events, self.config.kafka).run(None, Event())

    @contextmanager
    def worker(self) -> Iterator[psutil.Process]:
        """Run a worker; where the benchmark fails meanwhile, the error has the end of its log."""
        with worker(self.file, self.log, None) as process:
            try:
                yield psutil.Process(process.pid)
            except SystemExit as error:
                end = "\n".join(self.log.read_text().splitlines()[-10:])
                raise SystemExit(f"{error}; the worker's log ends:\n{end}") from error

    @property
    def topics(self) -> Topics:
        """What the topics are called."""
        return topics_of(self.config)

    @property
    def log(self) -> Path:
        """Where the worker logs to."""
        return self.file.with_suffix(".log")


def invented(folder: Path, count: int) -> Events:
    """Invent so many plays, and the tables that they refer to."""
    write_files(folder, Size(events=count + count // 10, users=USERS, videos=VIDEOS))
    return read_events(folder).first(count)


def broker_process() -> psutil.Process:
    """Return the process of the broker that this process has started."""
    for process in psutil.Process().children(recursive=True):
        if MAIN_CLASS in process.cmdline():
            return process
    raise RuntimeError("this process has started no broker")
