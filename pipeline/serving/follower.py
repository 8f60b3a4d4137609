"""A follower: it holds the workers' models by folding committed outcomes, and scores candidates with them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import structlog
from confluent_kafka import Consumer, KafkaException, Message

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import ForksError
from pipeline.kafka.access.authorization import denied
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import error_text
from pipeline.kafka.access.missing_rights import missing_rights
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.access.rights import Role, rights
from pipeline.kafka.clients import log_client_error
from pipeline.kafka.committed import committed_positions
from pipeline.kafka.output_values import OutputValues
from pipeline.kafka.partitioner import partition as partition_of_key
from pipeline.kafka.topics import partition_count
from pipeline.log.follower import CommittedEnds, LogFollower
from pipeline.log.outputs import decode_outcomes
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.model.factory import ModelFactory
from pipeline.model.score_terms import warm_up_explaining
from pipeline.records import outcome_decoder
from pipeline.records.fields import Id
from pipeline.records.names import state_key
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import OutputTypes
from pipeline.recovery.signature import state_signer
from pipeline.recovery.state_reader import state_of
from pipeline.serving.answers import FollowerFigures, PartitionNotReadyError
from pipeline.serving.exploration import warm_up_thompson
from pipeline.serving.partition import FollowedPartition, LostOutcomesError, Restored, TableFollower
from pipeline.serving.restoring import ModelRestorer
from pipeline.serving.served_model import ServedModel
from pipeline.serving.tables import NoTables, TopicTables

POLL_TIMEOUT: Final = 0.05
"""Seconds to wait for a message."""
STEP_SECONDS: Final = 0.05
"""Seconds after which the topics are polled again, while there is more to do."""
FIGURES_INTERVAL: Final = 1.0
"""Seconds between two figures, and between two questions for the ends of topics."""
RECONNECT_PAUSE: Final = 1.0
"""Seconds until a client is made anew."""
PATIENCE: Final = 1.0
"""Seconds to wait for a state record that an open transaction hides. No partition learns meanwhile, and one
that was not restored is tried again."""
SWITCH_INTERVAL: Final = 0.0005
"""Seconds after which a thread lets another run: with the interpreter's 5 ms, a request would wait that long
while outcomes are decoded."""

_log = structlog.get_logger()


class Follower:
    """Holds the model of every partition, outside the group; writes nothing to Kafka.

    Parameters
    ----------
    config
        The whole configuration. Learner, challengers, kind of features and target are those of the group's
        state records; all else that outputs depend on has to be the workers'.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topics = topics_of(config)
        self._values = OutputValues(self._topics)
        self._types = OutputTypes.of(config.stream)
        self._decoder = OutcomeDecoder(self._types)
        self._signer = state_signer(config.checkpoint, config.kafka)
        self._factory = ModelFactory(config)
        self._partitions: list[FollowedPartition] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._switch_interval = sys.getswitchinterval()
        self._brokers: str | None = None
        self._restoring: tuple[FollowedPartition, Iterator[Any]] | None = None
        self._figures_at, self._folds = time.monotonic(), 0
        self.figures = FollowerFigures((), 0.0, None)
        """Where the follower is: replaced about once a second, never changed."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the topics; 0 before `start`."""
        return len(self._partitions)

    def partition_of(self, key: Id) -> int:
        """Return the partition that messages with this key are in."""
        return partition_of_key(str(key).encode(), len(self._partitions))

    def lend_model(self, partition: int) -> AbstractContextManager[ServedModel]:
        """Lend the model of a partition as it is now: it learns nothing inside the block.

        Raises
        ------
        PartitionNotReadyError
            The model is not restored, or cannot follow.
        """
        if partition >= len(self._partitions):
            raise PartitionNotReadyError(partition, "the follower has not started", FIGURES_INTERVAL)
        return self._partitions[partition].lend_model()

    def start(self) -> None:
        """Begin to restore and to follow, in a thread of its own; brokers and topics are checked first.

        Raises
        ------
        BrokerError
            No broker answers.
        TopicError
            Topics are missing or not as needed.
        AuthorizationError
            The brokers deny a right.
        """
        admin = Admin(self._config.kafka)
        if missing := missing_rights(admin, rights(Role.FOLLOWER, self._config, self._topics)):
            raise denied(self._config.kafka, missing, Role.FOLLOWER)
        count = partition_count(admin, self._topics)
        self._partitions = [FollowedPartition(number) for number in range(count)]
        self._ends = CommittedEnds(self._config.kafka, self._topics.outcomes, count, admin)
        self._restorer = ModelRestorer(self._factory, count, self._signer, self._follow_tables)
        self._update_figures()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            sys.setswitchinterval(self._switch_interval)

    def _follow_tables(self, model: ServedModel) -> TableFollower:
        return TopicTables(self._config.kafka, self._topics, model) if model.versions else NoTables()

    # The follower's thread.

    def _run(self) -> None:
        self._factory.warm_up()
        outcome_decoder.warm_up()
        warm_up_explaining(self._factory.new_model())
        if self._config.serve.explore == "thompson":
            warm_up_thompson(self._factory.new_model())
        while not self._stopping.is_set():
            try:
                self._follow()
            except KafkaException as error:
                self._note_trouble(error_text(error))
            except ForksError as error:
                self._note_trouble(str(error))
            self._update_figures()
            self._stopping.wait(RECONNECT_PAUSE)
        for each in self._partitions:
            each.close()

    def _note_trouble(self, text: str) -> None:
        if text != self._brokers:
            _log.warning("cannot follow for now", trouble=text)
        self._brokers = text

    def _follow(self) -> None:
        """Follow with one set of clients, until it fails.

        Raises
        ------
        KafkaException
            A client cannot go on: it has to be made anew.
        ForksError
            The same, with a cause that a user can act on.
        """
        settings = client_settings(self._config.kafka) | {
            "error_cb": log_client_error,
            "group.id": self._config.kafka.group,
            "isolation.level": "read_uncommitted",  # of offsets, those of open transactions do not count
        }
        self._group: Consumer = new_client(Consumer, settings)
        self._log = LogFollower(self._config.kafka, self._topics)
        self._log_reader = LogReader(self._config.kafka, PATIENCE, self._values, outlast=False)
        try:
            self._assign_again()
            busy = False
            while not self._stopping.is_set():
                self._poll(0.0 if busy else POLL_TIMEOUT)
                busy = self._restore()
                end = time.monotonic() + STEP_SECONDS
                for each in self._partitions:
                    busy |= self._advance(each, end)
                    self._apply_backpressure(each)
                self._ask_for_ends()
                if time.monotonic() - self._figures_at >= FIGURES_INTERVAL:
                    self._update_figures()
        finally:
            self._restoring = None  # it begins anew with other clients
            self._log_reader.close()
            self._log.close()
            self._group.close()

    def _assign_again(self) -> None:
        """Go on with new clients where the partitions are."""
        for each in self._partitions:
            if not each.wants_restoration:
                self._log.assign(each.number, each.next_state, each.read_to)

    def _poll(self, timeout: float) -> None:
        """Read messages, and hand them to their partitions."""
        polled = self._log.poll(timeout)
        if polled is None:
            return
        self._brokers = None
        for each in self._partitions:
            for messages, note in (
                (polled.checkpoints.get(each.number), self._note_states),
                (polled.outcomes.get(each.number), self._note_outcomes),
            ):
                if messages is None or (each.wants_restoration and each.restore_from is None):
                    continue  # it will be read again
                with self._failing(each):
                    note(each, messages)
        for number, offset in polled.ends.items():
            self._partitions[number].note_end(offset)

    def _note_outcomes(self, each: FollowedPartition, messages: list[Message]) -> None:
        converted = self._values.converted(self._topics.outcomes, messages)
        each.note_outcomes(decode_outcomes(self._decoder, converted))

    def _note_states(self, each: FollowedPartition, messages: list[Message]) -> None:
        key = state_key(each.number).encode()
        for message in messages:
            each.next_state = (message.offset() or 0) + 1
            if message.key() == key:
                each.note_state(state_of(message, self._topics, each.number, self._signer))

    def _restore(self) -> bool:
        """Restore partitions, one after the other, for some time; return whether more is left to do."""
        end = time.monotonic() + STEP_SECONDS
        while time.monotonic() < end:
            if self._restoring is None and not self._begin_restoration():
                return False
            assert self._restoring is not None
            each, steps = self._restoring
            with self._failing(each):
                step = next(steps)
                if isinstance(step, int):
                    each.records_left = step
                    continue
                restored, begin = step
                self._end_restoration(each, restored, begin)
            self._restoring = None
        return True

    def _begin_restoration(self) -> bool:
        """Choose a partition that has to be restored; return whether there is one."""
        now = time.monotonic()
        due = (each for each in self._partitions if each.wants_restoration and each.restore_at <= now)
        each = next(due, None)
        if each is None:
            return False
        if each.restore_from is not None:
            steps = self._restorer.resume(self._log_of(each), each.restore_from)
        else:
            steps = self._steps_from_committed(each)
        self._restoring = each, steps
        return True

    def _steps_from_committed(self, each: FollowedPartition) -> Iterator[Any]:
        """Restore from what the group has committed by now; see `ModelRestorer.begin`."""
        position = committed_positions(self._group, self._topics, [each.number])[each.number]
        each.next_state = 0 if position.state_offset is None else position.state_offset + 1
        yield from self._restorer.begin(self._log_of(each), position)

    def _log_of(self, each: FollowedPartition) -> PartitionLog:
        return PartitionLog(self._log_reader, self._topics, each.number)

    def _end_restoration(self, each: FollowedPartition, restored: Restored, begin: int) -> None:
        each.restored(restored, begin)
        self._log.assign(each.number, each.next_state, begin)
        model = restored.model
        _log.info("restored", partition=each.number, outcomes=model.outcomes_learned, epoch=model.epoch)

    def _advance(self, each: FollowedPartition, end: float) -> bool:
        """Let a partition learn for some time; return whether more is left to do."""
        with self._failing(each):
            while each.advance():
                if time.monotonic() >= end:
                    return True
        return False

    @contextmanager
    def _failing(self, each: FollowedPartition) -> Iterator[None]:
        """Let a partition fail, and the others go on, where its records are not as they have to be."""
        try:
            yield
        except LostOutcomesError as error:
            self._fail(each, error, lost=True)
        except ForksError as error:
            self._fail(each, error, lost=False)

    def _fail(self, each: FollowedPartition, error: ForksError, *, lost: bool) -> None:
        text = str(error)
        if each.reason != text:
            _log.warning("cannot follow a partition for now", partition=each.number, reason=text)
        if self._restoring is not None and self._restoring[0] is each:
            self._restoring = None
        if lost and each.following:
            each.restart(text)
        else:
            each.fail(text)

    def _apply_backpressure(self, each: FollowedPartition) -> None:
        if each.full:
            self._log.pause(each.number)
        elif each.has_room:
            self._log.resume(each.number)

    def _ask_for_ends(self) -> None:
        """Find out, about once a second and in the background, where the committed outcomes end."""
        if time.monotonic() - self._figures_at >= FIGURES_INTERVAL:
            self._ends.ask()
        try:
            answer = self._ends.answer()
        except KafkaException as error:
            self._note_trouble(error_text(error))
            return
        except ForksError as error:
            self._note_trouble(str(error))
            return
        if answer is None:
            return
        self._brokers = None
        asked_at, ends = answer
        for each, offset in zip(self._partitions, ends, strict=True):
            each.note_committed_end(asked_at, offset)

    def _update_figures(self) -> None:
        now, folds = time.monotonic(), sum(each.folds for each in self._partitions)
        seconds = max(now - self._figures_at, 1e-9)
        self.figures = FollowerFigures(
            tuple(each.figures() for each in self._partitions),
            (folds - self._folds) / seconds,
            self._brokers,
        )
        self._figures_at, self._folds = now, folds
