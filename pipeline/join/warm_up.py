"""Compile what the join calls, before the first message comes."""

from __future__ import annotations

import numpy as np

from pipeline.config.tree import Join as JoinSettings
from pipeline.join import merge
from pipeline.join.digest_index import FEWEST_SLOTS
from pipeline.join.matching import match_events
from pipeline.join.records import Pending
from pipeline.join.tables import Join


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    merge.warm_up()
    join = Join(JoinSettings())
    predictions = [Pending(number, (), number, 0, number) for number in range(FEWEST_SLOTS)]
    join.open_all(predictions)  # so many that the index grows
    digests = join.digests([0])
    match_events(digests, digests)
    places = np.zeros((2, 1), dtype=np.int64)
    join.digester.digests_in(np.frombuffer(b"0", dtype=np.uint8), places[0], places[1] + 1)
    join.store(np.arange(1), np.zeros((1, 1)))
    join.close(predictions[0], None, 0)
    join.next_deadline()
    join.forget(join.next_deadline())
    join.lowest_needed(0, 0)
