"""Only the committed state record and the chunks that it names are read, and no more than they may be."""

from __future__ import annotations

import tracemalloc
from hashlib import sha256
from typing import cast

import pytest

from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.kafka.committed import CommittedPosition
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.model.snapshot import pack
from pipeline.recovery.state_check import UnusableStateError
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import SnapshotReference
from tests.fuzz.state import written
from tests.support.builders import new_model
from tests.support.memory_log import MemoryReader

OFFSET = 95
TOPICS = Topics()


def log_of(messages: dict[int, tuple[bytes | None, bytes]]) -> tuple[PartitionLog, MemoryReader]:
    """A log with some checkpoints, and its reader, which counts how many were read."""
    reader = MemoryReader({TOPICS.checkpoints: messages})
    return PartitionLog(cast(LogReader, reader), TOPICS, 0), reader


def read(messages: dict[int, tuple[bytes | None, bytes]]) -> None:
    state = written().state
    position = CommittedPosition(state.interactions.offset, state.labels.offset, OFFSET)
    log, _ = log_of(messages)
    assert read_state(log, position) == state


def test_the_committed_state_record_is_read() -> None:
    read({OFFSET: (b"0/state", written().value)})


def test_a_lost_state_record_is_explained() -> None:
    with pytest.raises(UnusableStateError, match=r"offset 95 .* has replaced it in compaction") as error:
        read({})
    assert "`forks checkpoint recover`" in str(error.value)
    assert error.value.exit_code == 5


def test_a_record_with_another_key_is_no_state_record() -> None:
    for key in (b"1/state", b"0/snapshot/0/0", b""):
        with pytest.raises(UnusableStateError, match="its key is"):
            read({OFFSET: (key, written().value)})


def reference(data: bytes, chunks: int) -> SnapshotReference:
    return SnapshotReference([*range(chunks)], sha256(data).hexdigest(), 1, 0, 0)


def test_a_chunk_with_another_key_is_refused() -> None:
    data = pack(new_model())
    log, _ = log_of({0: (b"0/snapshot/0/0", data)})
    with pytest.raises(StateError, match="not a chunk with the key 0/snapshot/1/0"):
        snapshot_bytes(log, reference(data, 1))
    log, _ = log_of({0: (b"0/snapshot/1/0", data)})
    assert snapshot_bytes(log, reference(data, 1), new_model()) == data


def test_no_more_chunks_are_read_than_the_header_names() -> None:
    data = pack(new_model())
    log, reader = log_of({n: (f"0/snapshot/1/{n}".encode(), data) for n in range(1_000)})
    with pytest.raises(StateError, match=f"its header names {len(data)} bytes, but it has 1000 chunks"):
        snapshot_bytes(log, reference(data, 1_000), new_model())
    assert reader.reads == 1


def test_a_header_that_names_more_than_the_settings_allow_is_refused_before_anything_is_allocated() -> None:
    tensor = b'{"dtype":"F64","shape":[1000000000,3],"data_offsets":[0,24000000000]}'
    header = b'{"users.totals":' + tensor + b"}"
    data = len(header).to_bytes(8, "little") + header
    log, reader = log_of({n: (f"0/snapshot/1/{n}".encode(), data) for n in range(30_000)})
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=r"are float64 \(1000000000, 3\), not .*at most 3"):
            snapshot_bytes(log, reference(data, 30_000), new_model())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.reads == 1
    assert peak < 10_000_000
