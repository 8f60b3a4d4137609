"""How fast outcomes are learned, from their JSON to the model, without Kafka."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from pipeline.log.reader import MAX_POLL_RECORDS
from pipeline.model.model import Model
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import KUAIREC_TYPES


def rates(new_model: Callable[[], Model], values: Sequence[bytes], runs: int) -> dict[str, Any]:
    """Return the medians of so many runs.

    Parameters
    ----------
    new_model : makes a model that the first of the outcomes is the next one of
    values : the outcomes' JSON
    runs : how often they are learned

    Returns
    -------
    dict
        Outcomes a second, on the clock and of the processor; and what each part takes of an outcome.
    """
    parts, clock = [], []
    for _ in range(runs):
        clock.append(_learn(new_model(), values))
        parts.append(_parts(new_model(), values))
    count = len(values)
    return {
        "outcomes_per_s": round(count / median(clock)),
        "outcomes_per_processor_s": round(count / median(sum(seconds.values()) for seconds in parts)),
        "outcome_us": {
            name: round(1e6 * median(seconds[name] for seconds in parts) / count, 2) for name in parts[0]
        },
    }


def _learn(model: Model, values: Sequence[bytes]) -> float:
    """Learn, as a restore does; the seconds on the clock."""
    decode = OutcomeDecoder(KUAIREC_TYPES).decode
    begin = time.perf_counter()
    for piece in _sliced(values):
        model.learn_columns(decode(piece))
    return time.perf_counter() - begin


def _parts(model: Model, values: Sequence[bytes]) -> dict[str, float]:
    """Learn outcomes, and return the processor seconds of each part."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for owner, method, name in (
        (model.learner, "run", "learner"),
        (model.statistics, "run", "statistics"),
    ):
        setattr(owner, method, _timed(getattr(owner, method), seconds, name))
    decode = _timed(OutcomeDecoder(KUAIREC_TYPES).decode, seconds, "json")
    learn = _timed(model.learn_columns, seconds, "learn")
    for piece in _sliced(values):
        learn(decode(piece))
    seconds["rest"] = seconds.pop("learn") - seconds["learner"] - seconds["statistics"]
    return seconds


def _sliced(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Return them in the slices of a restore."""
    return (values[start : start + MAX_POLL_RECORDS] for start in range(0, len(values), MAX_POLL_RECORDS))


def _timed(action: Callable[..., Any], seconds: dict[str, float], name: str) -> Callable[..., Any]:
    """Return what does the same and adds its seconds to those of the name."""

    def timed(*given: Any) -> Any:
        begin = time.process_time()
        result = action(*given)
        seconds[name] += time.process_time() - begin
        return result

    return timed
