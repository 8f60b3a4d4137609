from __future__ import annotations

from pathlib import Path

import pytest

from bench.serve_sizes import restore_and_score, write_snapshot


@pytest.mark.slow
def test_a_snapshot_is_restored_and_scores(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(0, path)
    without = path.stat().st_size
    write_snapshot(1_000, path)
    assert path.stat().st_size > without + 2 * 1_000 * 32
    memory = restore_and_score(path)
    assert 0 < memory.before <= memory.peak
    assert 0 < memory.after <= memory.peak
