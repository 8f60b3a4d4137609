from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.features import Totals, block, candidates, run, sets
from bench.kuairec import labels_at_once
from bench.options import Options
from pipeline.sources.kuairec import read_events

TAGS = {video: [video % 2] for video in range(4)}


def test_a_candidate_knows_the_labels_before_an_event_and_no_other(folder: Path) -> None:
    frame = read_events(folder).frame
    stream = labels_at_once(frame, folder, "running")
    found = candidates(frame, stream.X, stream, TAGS)
    assert found["tags"][0] == pytest.approx((0.5, 0.0, 0.5, 0.0))
    # Events 0 and 2 have even videos and go unwatched, 1 and 3 odd ones and are watched.
    prior, ratio = 2.5 / 5.0, 4.5 / 5.0
    mean = (0.0 + 10.0 * prior) / 12.0
    assert found["tags"][4] == pytest.approx(
        (mean, math.log(mean / (1 - mean)), (1.0 + 10.0 * ratio) / 12.0, math.log(3.0))
    )
    changed = frame.with_columns(watch_ratio=frame["watch_ratio"].reverse())
    other = labels_at_once(changed, folder, "running")
    later = candidates(changed, other.X, other, TAGS)
    for name, columns in found.items():
        np.testing.assert_array_equal(columns[0], later[name][0])
        assert not np.array_equal(columns[6:], later[name][6:])


def test_a_user_s_tags_begin_at_the_user_s_own_means(folder: Path) -> None:
    frame = read_events(folder).frame
    stream = labels_at_once(frame, folder, "running")
    found = candidates(frame, stream.X, stream, TAGS)["user by tag"]
    np.testing.assert_allclose(found[:3, :3], stream.X[:3, :3], atol=1e-6)  # these are rounded
    np.testing.assert_array_equal(found[:3, 3], 0.0)


def test_an_older_label_counts_less_where_labels_are_forgotten() -> None:
    totals = Totals(keep=0.5)
    for label in (1.0, 0.0):
        totals.add(["a"], np.array([1.0, label, 0.0, 0.0]))
    assert totals.of(["a", "unknown"]).tolist() == [1.5, 0.5, 0.0, 0.0]
    assert block(np.zeros(4), 0.25, 0.5) == (0.25, math.log(1 / 3), 0.5, 0.0)


def test_all_candidates_are_compared_on_both_halves(folder: Path) -> None:
    data = folder.parent / "data"
    data.mkdir()
    folder.rename(data / "kuairec")
    result = run(Options(2, data, quiet=True))
    frame = read_events(data / "kuairec").frame
    stream, running = (labels_at_once(frame, data / "kuairec", kind) for kind in ("effects", "running"))
    names = set(sets(frame, stream, running.X, TAGS))
    for half in ("chosen_on", "confirmed_on"):
        assert result[half]["features"].keys() == names
        assert result[half]["features"]["in use"]["mistakes"]["difference"] == 0.0
    assert result["chosen_on"]["events"] + result["confirmed_on"]["events"] == 12
