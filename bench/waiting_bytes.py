"""Bytes of memory for each prediction that waits for its label: in memory, and spilled to a file.

Without Kafka. In memory, what Python and NumPy have allocated is counted. What is spilled has columns that
are allocated long before they are written, so the resident memory of the process is looked at. An index that
has just grown has the most bytes for each entry: the largest share is what counts.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import cycle, islice
from typing import Final

import msgspec
import psutil

from pipeline.config.settings import Config
from pipeline.config.settings import Join as JoinSettings
from pipeline.join.records import Pending
from pipeline.join.spill import SpilledPredictions
from pipeline.join.tables import Join
from pipeline.model.factory import ModelFactory
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Prediction
from pipeline.sources.kuairec import Events
from pipeline.tools.evaluate.table_run import batches
from pipeline.worker.encoder import RecordEncoder
from pipeline.worker.spill_file import SpillFile

IN_MEMORY: Final = 20_000
"""Predictions of which it is counted what they take in memory."""
SPILLED: Final = 1_000_000
"""Predictions of which it is measured what they take when they are spilled."""
BATCH: Final = 5_000
"""Predictions that are spilled at once, as of a transaction of a worker."""


def bytes_of_waiting(events: Events, spilled: int = SPILLED) -> dict[str, float]:
    """Return the bytes of a waiting prediction of KuaiRec's stream by where it is.

    Parameters
    ----------
    events
        Events to predict, some thousands.
    spilled
        Predictions to spill.
    """
    config = Config()
    written = batches(events.first(IN_MEMORY), config, ModelFactory(config))
    texts = [value for batch in written for value in batch.records.predictions.values]
    whole, text = bytes_in_memory(config.join, texts), sum(map(len, texts)) / len(texts)
    return {
        "bytes_each_in_memory": round(whole),
        "bytes_each_beside_text": round(whole - text, 1),
        "bytes_each_spilled": round(bytes_spilled(texts, spilled), 1),
    }


def bytes_in_memory(settings: JoinSettings, texts: Sequence[bytes]) -> float:
    """Return the bytes of a prediction that waits in memory, given the records of some."""
    _open(Join(settings), RecordEncoder(), map(KUAIREC_TYPES.predictions.decode, texts[:1]))
    tracemalloc.start()
    join, encoder = Join(settings), RecordEncoder()
    before, _ = tracemalloc.get_traced_memory()
    _open(join, encoder, map(KUAIREC_TYPES.predictions.decode, texts))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(texts)


def bytes_spilled(texts: Sequence[bytes], number: int = SPILLED) -> float:
    """Return the most bytes of memory for each spilled prediction, while so many are spilled.

    Parameters
    ----------
    texts
        Records of some predictions, from which the others are made.
    number
        Predictions to spill. The largest share is looked for from a quarter of them on.
    """
    process, size, most = psutil.Process(), len(texts), 0.0
    settings = JoinSettings(window="365d", max_in_memory=size, max_pending=2 * (number + size))
    with closing(SpillFile()) as file:
        spilled = SpilledPredictions(file, KUAIREC_TYPES.predictions, bytes(16))
        join, encoder, records = Join(settings, spilled), RecordEncoder(), _renumbered(texts)
        while len(spilled) < BATCH:
            _open(join, encoder, islice(records, BATCH))
            join.spill(encoder.take)
        gc.collect()  # garbage of other work would count as growth
        before, spilled_before = process.memory_info().rss, len(spilled)
        while len(spilled) < number:
            _open(join, encoder, islice(records, BATCH))
            join.spill(encoder.take)
            more = len(spilled) - spilled_before
            if more >= number // 4:
                gc.collect()
                most = max(most, (process.memory_info().rss - before) / more)
    return most


def _open(join: Join, encoder: RecordEncoder, records: Iterable[Prediction]) -> None:
    """Let predictions wait."""
    waiting = list(records)
    for record in waiting:
        join.open_all([Pending.of(record)])
    encoder.restore(waiting)
    join.pending.read_ids_from(encoder)


def _renumbered(texts: Sequence[bytes]) -> Iterator[Prediction]:
    """Yield predictions of other events, one after the other, without an end."""
    for sequence, text in enumerate(cycle(texts)):
        record = KUAIREC_TYPES.predictions.decode(text)
        yield msgspec.structs.replace(
            record, event_id=f"{record.event_id}-{sequence}", timestamp=sequence, sequence=sequence
        )
