"""Compile all that a worker calls, before the first message comes.

The image of the containers runs `python -m pipeline.worker.warm_up` once, and so does `forks demo` while its
broker starts. It also imports what a worker and a follower import, so that the byte code is there, too.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

import numpy as np
from numba.core.event import Listener, install_listener

from forks.jit import cache_folder
from forks.learning.event_loop import run
from pipeline.config.settings import Config
from pipeline.join import loop, symbols
from pipeline.join.warm_up import warm_up as warm_up_join
from pipeline.kafka import batch_producer, message_reader
from pipeline.model import label_policy
from pipeline.model.factory import ModelFactory
from pipeline.model.score_terms import warm_up_explaining
from pipeline.model.warm_up import warm_up_statistics
from pipeline.monitoring.drift import DriftDetector
from pipeline.records import column_decoder, column_encoder, outcome_decoder, waiting_texts
from pipeline.records.decimals import encode_rows
from pipeline.task import merging

MODULE: Final = "pipeline.worker.warm_up"
_ALL_BUT_LEARNER: Final = "all-but-learner"


def warm_up(factory: ModelFactory) -> None:
    """Compile what a worker calls. This is quick where it was done before.

    Else a second process compiles all but the learner meanwhile, which takes as long, and what it compiled is
    loaded.

    Parameters
    ----------
    factory
        Makes the worker's models.
    """
    with _second_process() as second:
        factory.warm_up()
        second.wait()
        _warm_up_all_but_learner()
    warm_up_explaining(factory.new_model())


def _warm_up_all_but_learner() -> None:
    warm_up_statistics()
    warm_up_join()
    label_policy.warm_up()
    symbols.warm_up()
    loop.warm_up()
    merging.warm_up()
    encode_rows(np.zeros((1, 1)))
    column_decoder.warm_up()
    column_encoder.warm_up()
    waiting_texts.warm_up()
    outcome_decoder.warm_up()
    batch_producer.warm_up()
    message_reader.warm_up()
    DriftDetector().add(np.zeros(1))


class _SecondProcess(Listener):
    """Starts a process once a function is compiled that was not loaded."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba gives it
        """Start the process, unless it was."""
        if self._process is None:
            # Its errors are those of this process, which then comes to the same functions.
            nowhere = subprocess.DEVNULL
            command = (sys.executable, "-m", MODULE, _ALL_BUT_LEARNER)
            self._process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)

    def on_end(self, event: Any) -> None:
        """Do nothing."""

    def wait(self) -> None:
        """Wait until the process has ended, if there is one."""
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def _second_process() -> Iterator[_SecondProcess]:
    """Start a second process when something is compiled in this block, if code can be kept on disk."""
    second = _SecondProcess()
    if cache_folder(run) is None:
        yield second
        return
    try:
        with install_listener("numba:compile", second):
            yield second
    finally:
        second.stop()


if __name__ == "__main__":
    gc.disable()  # the collector finds little here, and takes a tenth of the time
    if sys.argv[1:] == [_ALL_BUT_LEARNER]:
        _warm_up_all_but_learner()
    elif cache_folder(run) is not None:
        import_module("pipeline.worker.worker")
        import_module("pipeline.serving.service")
        warm_up(ModelFactory(Config()))
