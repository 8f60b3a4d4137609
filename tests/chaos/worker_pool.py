"""The workers: real processes, which are struck and started again."""

from __future__ import annotations

import copy
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.harness import TIMEOUT, Pipeline
from tests.support.forked import CommandProcess

BROKER_UNAVAILABLE, REPLACED = 3, 7
"""Exit codes after which whoever looks after a worker starts it again, see docs/limits.md."""

_ASSIGNMENT = re.compile(r"^(\S+) .*\b(assigned|revoked) +partitions=\[([\d, ]*)\]", re.MULTILINE)
_STARTED_OVER = re.compile(r"starting over from the log +reason='?(\w+)")


@dataclass
class Worker:
    """A process, and the log that is its own."""

    process: CommandProcess
    log: Path
    asleep: bool = False
    """Whether it was stopped, and not woken since."""

    def stop(self) -> None:
        """Put it to sleep."""
        self.asleep = True
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self.asleep = False
        self.process.send_signal(signal.SIGCONT)

    @property
    def partitions(self) -> set[int]:
        """Those that it believes to have."""
        changes = _ASSIGNMENT.findall(self.log.read_text())
        if not changes or changes[-1][1] == "revoked":
            return set()
        return {int(number) for number in changes[-1][2].split(",") if number.strip()}


@dataclass
class WorkerPool:
    """Workers by number, those with even ones named, and what became of them.

    A worker that ends without being told to is started again; `problems` says where it should not have.
    Of two by the same name one has to leave. Mostly it is the older, which was asleep; but one that wakes
    before it hears from the group joins it anew, and then the other has to.
    """

    pipeline: Pipeline
    bootstrap_of: Callable[[int], str]
    """Where a worker of that number reaches the brokers."""
    workers: dict[int, Worker] = field(default_factory=dict)
    zombies: list[tuple[int, Worker]] = field(default_factory=list)
    """Processes in whose place another one with the same name was started, and its number."""
    exits: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _started: list[Worker] = field(default_factory=list)
    _retry_at: dict[int, float] = field(default_factory=dict)

    def name(self, number: int) -> str | None:
        """Its `kafka.instance`, if it has one."""
        return None if number % 2 else f"worker-{number}"

    def start(self, number: int) -> None:
        """Start a worker in the place of that number."""
        log = self.pipeline.folder / f"worker-{number}-{len(self._started)}.log"
        seen = copy.copy(self.pipeline)
        seen.kafka = seen.kafka.model_copy(update={"bootstrap": self.bootstrap_of(number)})
        worker = Worker(seen.start_worker(self.name(number), log), log)
        self._started.append(worker)
        self.workers[number] = worker

    def remove(self, number: int) -> Worker:
        """Take a worker out, to be struck down."""
        return self.workers.pop(number)

    def replace(self, number: int) -> Worker:
        """Start another worker under the name of one that sleeps."""
        zombie = self.remove(number)
        self.zombies.append((number, zombie))
        self.start(number)
        return zombie

    def restart_ended(self) -> None:
        """Start again who ended by itself, a second later; a zombie that took its name back is its heir."""
        now = time.monotonic()
        for number, worker in list(self.workers.items()):
            code = self._ended(worker)
            if code is None:
                continue
            del self.workers[number]
            if code != REPLACED or not self._inherit(number):
                self._retry_at[number] = now + 1.0
        self.zombies = [(number, zombie) for number, zombie in self.zombies if self._ended(zombie) is None]
        for number, due in list(self._retry_at.items()):
            if now >= due:
                del self._retry_at[number]
                self.start(number)

    def _ended(self, worker: Worker) -> int | None:
        """The exit code of a worker that ended by itself, which is noted."""
        code = worker.process.poll()
        if code is not None:
            self.exits[code] += 1
            if code not in (BROKER_UNAVAILABLE, REPLACED):
                self.problems.append(
                    f"a worker ended with exit code {code}, see {worker.log.name}: {_end(worker)}"
                )
        return code

    def _inherit(self, number: int) -> bool:
        """Put a zombie that is awake in the place of one by the same name that has left, if there is one."""
        for index, (its_number, zombie) in enumerate(self.zombies):
            if its_number == number and not zombie.asleep:
                del self.zombies[index]
                self.workers[number] = zombie
                return True
        return False

    def stop(self) -> None:
        """Tell all to stop and wait until they have; of two by the same name, one has to leave before."""
        end = time.monotonic() + TIMEOUT
        while self.zombies and time.monotonic() < end:
            self.restart_ended()
            time.sleep(0.1)
        for number, zombie in self.zombies:
            self.problems.append(
                f"of two workers {self.name(number)} none has left, see {zombie.log.name}: {_end(zombie)}"
            )
        for worker in self.workers.values():
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            self.expect(worker, 0, "a worker that was told to stop")

    def expect(self, worker: Worker, wanted: int, who: str) -> None:
        """Wait for a worker's end, which has to have this exit code."""
        try:
            code: int | None = worker.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            code = None
        if code == -signal.SIGTERM and wanted == 0 and not _ASSIGNMENT.search(worker.log.read_text()):
            return  # it was still starting, and had nothing to finish
        if code != wanted:
            ended = "did not end" if code is None else f"ended with {code}"
            self.problems.append(f"{who} {ended}, see {worker.log.name}: {_end(worker)}")

    def end(self) -> None:
        """SIGKILL whoever is left, also those that sleep."""
        for worker in self._started:
            worker.process.kill()
            worker.process.wait()

    def sessions_thrown_away(self) -> Counter[str]:
        """How often a worker started over from the log, by the error's name."""
        return Counter(
            name for worker in self._started for name in _STARTED_OVER.findall(worker.log.read_text())
        )

    def rebalances(self) -> int:
        """How often the group shared its partitions out, the first time not counted, at least.

        Each time, every member is assigned once: where one is for a second time, a new round has begun.
        """
        given = sorted(
            (when, number)
            for number, worker in enumerate(self._started)
            for when, what, _ in _ASSIGNMENT.findall(worker.log.read_text())
            if what == "assigned"
        )
        generations, members = 0, set[int]()
        for _, member in given:
            if member in members:
                generations, members = generations + 1, set()
            members.add(member)
        return generations


def _end(worker: Worker) -> str:
    return " | ".join(worker.log.read_text().splitlines()[-3:])
