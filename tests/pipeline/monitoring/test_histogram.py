from __future__ import annotations

from functools import reduce
from operator import add

from hypothesis import given
from hypothesis import strategies as st

from pipeline.monitoring.histogram import Histogram
from tests.support.examples import examples

BOUNDS = (0.5, 1.0, 10.0)


@examples(50)
@given(st.lists(st.floats(0.0, 20.0) | st.sampled_from(BOUNDS), max_size=30))
def test_buckets_are_cumulative_and_include_their_bound(values: list[float]) -> None:
    histogram = Histogram.empty(BOUNDS).observe(*values)
    assert histogram.buckets == [
        *((str(bound), sum(value <= bound for value in values)) for bound in BOUNDS),
        ("+Inf", len(values)),
    ]
    assert histogram.sum == reduce(add, values, 0.0)  # sum() rounds in another way from Python 3.12 on
