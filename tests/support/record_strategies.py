"""Records of every kind, with any values that they may have."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.outputs import (
    EffectSums,
    EntityCounts,
    Example,
    LabelRequest,
    Outcome,
    Prediction,
    Share,
)
from pipeline.task.record_queue import Position
from pipeline.task.state import (
    COUNTERS,
    Libraries,
    LibraryEpoch,
    SavedLabel,
    SettingsEpoch,
    SnapshotReference,
    State,
)

ids = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=256)
times = st.integers(0, 2**53)
counts = st.integers(0, 2**60)
finite = st.floats(allow_nan=False, allow_infinity=False)
durations = st.floats(0, 1e12)
interactions = st.builds(KuaiRecInteraction, ids, ids, ids, times, durations)
labels = st.builds(WatchLabel, ids, ids, ids, times, durations, st.floats(0, 1e9))
predicted: dict[str, st.SearchStrategy[Any]] = {
    "event_id": ids,
    "user_id": ids,
    "video_id": ids,
    "timestamp": times,
    "score": finite,
    "probability": st.none() | st.floats(0, 1),
    "predicted": st.booleans(),
    "features": st.lists(finite, min_size=FEATURES_LENGTH, max_size=FEATURES_LENGTH),
    "model_version": counts,
    "sequence": counts,
    "challengers": st.none() | st.dictionaries(st.sampled_from("abc"), finite, min_size=1),
}
asked = st.none() | st.booleans()
predictions = st.builds(Prediction, **predicted, asked=asked)
requests = st.builds(LabelRequest, ids, ids, ids, times, finite, counts, counts)
features = predicted["features"]
video_counts = st.builds(
    lambda video, labels, more, ratios: EntityCounts(video, labels + more, labels, ratios),
    ids,
    counts,
    counts,
    st.floats(0, 1e300),
)
examples = st.builds(Example, ids, ids, times, features, st.booleans(), st.floats(0, 1e9))
positive = st.floats(0, 1e300)
effect_sums = st.builds(EffectSums, finite, positive, finite, positive)
shares = st.lists(video_counts, max_size=3).flatmap(
    lambda videos: st.builds(
        Share,
        partition=counts,
        since=counts,
        until=counts,
        videos=st.just(videos),
        examples=st.lists(examples, max_size=2),
        effects=st.none() | st.lists(effect_sums, min_size=len(videos), max_size=len(videos)),
        window_end=st.none() | times,
        closed_until=st.none() | times,
    )
)
shared = st.none() | st.lists(shares, min_size=1, max_size=2)
labelled = st.builds(
    Outcome,
    **predicted,
    prediction_sequence=counts,
    watch_ratio=st.floats(0, 1e9),
    label=st.booleans(),
    label_timestamp=times,
    correct=st.booleans(),
    loss=st.floats(0, 1e300),
    status=st.just("labelled"),
    shared=shared,
    asked=asked,
)
unasked = st.builds(
    Outcome,
    **predicted,
    prediction_sequence=counts,
    watch_ratio=st.floats(0, 1e9),
    label=st.none(),
    label_timestamp=times,
    correct=st.none(),
    loss=st.none(),
    status=st.just("labelled"),
    shared=shared,
    asked=st.just(False),
)
expired = st.builds(
    Outcome,
    **predicted,
    prediction_sequence=counts,
    watch_ratio=st.none(),
    label=st.none() | st.just(False),
    label_timestamp=st.none(),
    correct=st.none() | st.booleans(),
    loss=st.none() | st.floats(0, 1e300),
    status=st.just("expired"),
    shared=shared,
    asked=asked,
)
corrections = st.builds(
    Outcome,
    **predicted,
    prediction_sequence=counts,
    watch_ratio=st.floats(0, 1e9),
    label=st.booleans(),
    label_timestamp=times,
    correct=st.booleans(),
    loss=st.floats(0, 1e300),
    status=st.sampled_from(["corrected", "replaced"]),
    shared=shared,
    asked=st.none(),
    former=st.none() | st.floats(0, 1e9),
)
positions = st.builds(Position, counts, st.none() | times, st.none() | times)
snapshots = st.builds(
    SnapshotReference,
    chunks=st.lists(counts, min_size=1, max_size=3),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    slot=st.integers(0, 1),
    outcomes_learned=counts,
    outcome_offset=counts,
)
texts = st.dictionaries(st.text(), st.text(), max_size=3)
headers = st.lists(st.tuples(st.text(), st.none() | st.binary()), max_size=2)
saved_labels = st.builds(SavedLabel, st.text(), counts, counts, st.none() | st.binary(), st.binary(), headers)
versions = st.dictionaries(
    st.text(max_size=40),
    st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=200),
    max_size=16,
)
library_epochs = st.builds(LibraryEpoch, versions, counts, counts)
states = st.builds(
    State,
    partition=counts,
    settings=texts,
    stream_time=st.integers(-1, 2**53),
    interactions=positions,
    labels=positions,
    predictions=counts,
    outcomes=counts,
    pending=counts,
    pending_from=counts,
    outcomes_from=counts,
    prediction_offset=counts,
    outcome_offset=counts,
    snapshot=st.none() | snapshots,
    waiting=st.lists(saved_labels, max_size=2),
    counters=st.fixed_dictionaries(dict.fromkeys(COUNTERS, counts)),
    earlier=st.lists(st.builds(SettingsEpoch, texts, counts, counts), max_size=2),
    published=st.none() | counts,
    taken=st.dictionaries(counts, counts, max_size=2),
    windows=st.just(msgspec.UNSET) | st.dictionaries(counts, times, max_size=2),
    libraries=st.just(msgspec.UNSET) | st.builds(Libraries, versions, st.lists(library_epochs, max_size=8)),
)
WRITTEN: dict[str, st.SearchStrategy[msgspec.Struct]] = {
    "interaction": interactions,
    "watch-label": labels,
    "prediction": predictions,
    "label-request": requests,
    "outcome": labelled | unasked | expired | corrections,
    "share": shares,
    "state": states,
}
