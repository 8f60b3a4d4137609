"""A restore of one partition, whole and step by step."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median

import msgspec

from pipeline.config.settings import Config
from pipeline.config.topics import Topics
from pipeline.kafka.clients import group_consumer
from pipeline.kafka.committed import CommittedPosition, committed_positions
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import unpack
from pipeline.model.warm_up import warm_up
from pipeline.records.decoding import LABEL_DECODER
from pipeline.records.outputs import Prediction
from pipeline.recovery.restoration import TaskRestorer
from pipeline.recovery.restore import restore
from pipeline.recovery.state_reader import read_snapshot, read_state, snapshot_bytes
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from pipeline.worker.worker import tune_garbage_collector

_PREDICTIONS = msgspec.json.Decoder(Prediction)


class Restores:
    """Restores of the one partition of a pipeline; nothing is changed by them.

    Parameters
    ----------
    config : the workers' configuration
    runs : how often each is done; medians count
    """

    def __init__(self, config: Config, runs: int) -> None:
        self.config = config
        self.factory = ModelFactory(config)
        self._runs = runs
        self._topics = Topics(config.kafka.prefix)
        warm_up(self.factory.learner)
        tune_garbage_collector()

    def seconds(self) -> tuple[float, float]:
        """Restore as a worker does that knows the offsets: seconds on the clock, and of the processors."""
        start = self._start()
        clock, processors = zip(*(self._timed(start) for _ in range(self._runs)), strict=True)
        return median(clock), median(processors)

    def parts(self) -> dict[str, float]:
        """Return the seconds of each step; "read" is waiting, since the client reads ahead meanwhile."""
        runs = [self._step_seconds() for _ in range(self._runs)]
        return {name: round(median(seconds[name] for seconds in runs), 3) for name in runs[0]}

    def since_snapshot(self) -> tuple[Callable[[], Model], list[bytes]]:
        """Return what makes the model of the snapshot, and the values of the outcomes that it lacks."""
        topics, new_model = self._topics, self.factory.new_model
        with LogReader(self.config.kafka, 10.0) as reader:
            log = PartitionLog(reader, topics, 0)
            state = read_state(log, self._start())
            if state.snapshot is None:
                raise SystemExit("the worker wrote no snapshot")
            data = snapshot_bytes(log, state.snapshot)
            read = log.messages(topics.outcomes, state.snapshot.outcome_offset)
            values = [message.value() or b"" for message in read]

        def restored() -> Model:
            model = new_model()
            unpack(data, model)
            return model

        return restored, values[state.snapshot.outcomes_learned - state.outcomes :]

    def _start(self) -> CommittedPosition:
        consumer = group_consumer(self.config.kafka, self.config.worker)
        try:
            return committed_positions(consumer, self._topics, [0])[0]
        finally:
            consumer.close()

    def _timed(self, start: CommittedPosition) -> tuple[float, float]:
        begin, spent = time.perf_counter(), time.process_time()
        *_, task = restore(
            0,
            start,
            self.factory.new_model,
            self.factory.settings(1),
            self.config,
            labels=LABEL_DECODER,
            texts=RecordEncoder(),
        )
        if not isinstance(task, Task):
            raise SystemExit("nothing was restored")
        return time.perf_counter() - begin, time.process_time() - spent

    def _step_seconds(self) -> dict[str, float]:
        """Take the steps of `restore` one after the other, also those that share two processors there."""
        seconds: defaultdict[str, float] = defaultdict(float)
        topics, last = self._topics, time.perf_counter()

        def end_step(name: str) -> None:
            nonlocal last
            now = time.perf_counter()
            seconds[name] += now - last
            last = now

        start = self._start()
        end_step("ask the group")
        with LogReader(self.config.kafka, 10.0) as reader:
            log = PartitionLog(reader, topics, 0)
            state = read_state(log, start)
            end_step("connect, read the state record")
            model, state = read_snapshot(log, state, self.factory.new_model)
            end_step("read the snapshot")
            task = Task.restore(state, model, self.config.join)
            restoration = TaskRestorer(task, state, RecordEncoder())
            begin = min(state.snapshot.outcome_offset if state.snapshot else 0, state.outcome_offset)
            lowest = min(state.outcomes_from, model.outcomes_learned)
            for outcomes in log.outcomes(begin, first=lowest, stop=state.outcomes):
                end_step("read and decode outcomes")
                restoration.outcomes(outcomes)
                end_step("fold outcomes")
            end_step("read and decode outcomes")
            waiting = log.predictions(
                state.prediction_offset, first=state.pending_from, stop=state.predictions
            )
            for predictions in waiting:
                restoration.predictions(predictions)
            restoration.finish()
            end_step("pending predictions")
        end_step("close")
        return seconds
