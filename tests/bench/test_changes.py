from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.changes import SETS, TRACKING, changing_kernel, changing_stream, run
from bench.options import Options
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

PLAYS = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio"
INTERACTIONS = "user_id,video_id,time_ms,is_click,long_view,label"
DAY = 86_400_000


def small_folder(folder: Path) -> Path:
    """Write a few rows of each set."""
    for name in ("kuairec", "kuairand", "libsvm"):
        (folder / name).mkdir()
    plays = [f"{i % 3},{i % 4},2500,4000,,,{1000 + i},{0.5 + i % 2}" for i in range(12)]
    (folder / "kuairec" / DEFAULT_MATRIX).write_text("\n".join([PLAYS, *plays]) + "\n")
    (folder / "kuairec" / "item_categories.csv").write_text("video_id,feat\n1,[3]\n")
    rows = [f"{i % 3},{i % 4},{i * DAY},{i % 2},{int(i % 3 == 0)},{int(i > 9)}" for i in range(20)]
    (folder / "kuairand" / "log.csv").write_text("\n".join([INTERACTIONS, *rows]) + "\n")
    rng = np.random.default_rng(0)
    for name in SETS:
        np.savez(folder / "libsvm" / f"{name}.npz", X=rng.normal(size=(30, 3)), y=rng.choice([-1, 1], 30))
    return folder


def test_all_figures_are_there_and_those_after_changes_are_better_with_tracking(tmp_path: Path) -> None:
    found = run(Options(1, small_folder(tmp_path), quiet=True))
    for change in ("ranking", "sensor", "fashion"):
        left = {side: found["changes"][side][change]["left"]["mean"] for side in TRACKING}
        assert left["tracking"] < left["without"]
    assert found["kuairec, delayed"].keys() == TRACKING.keys()
    assert found["german, random order"].keys() == {*TRACKING, "difference", "difference_log_loss"}


def test_the_best_possible_mistakes_stay_the_same_and_the_broken_column_is_the_strongest() -> None:
    X, y = changing_stream(1, phase=20_000)
    phases = [slice(k * 20_000, (k + 1) * 20_000) for k in range(4)]
    fitted = np.array([np.linalg.lstsq(np.c_[X[part], np.ones(20_000)], y[part])[0] for part in phases])
    mistakes = [
        np.mean((np.c_[X[part], np.ones(20_000)] @ w > 0) != (y[part] > 0))
        for part, w in zip(phases, fitted, strict=True)
    ]
    assert max(mistakes) - min(mistakes) < 0.01
    flipped = np.flatnonzero(np.abs(fitted[1, :-1] + fitted[2, :-1]) < 0.03)
    assert np.argmax(np.abs(fitted[1, :-1])) in flipped
    changed = np.abs(fitted[2, :-1] - fitted[3, :-1]) > 0.05
    assert changed[:5].any()
    assert not changed[5:].any()


def test_bumps_are_drawn_anew_at_each_change() -> None:
    X, y = changing_kernel(1, phase=500)
    assert X.shape == (2_000, 10)
    assert set(y.tolist()) == {-1.0, 1.0}
    again, labels = changing_kernel(1, phase=500)
    assert (again == X).all()
    assert (labels == y).all()
