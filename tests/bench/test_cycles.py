from __future__ import annotations

from pathlib import Path

import pytest

from bench import cycles
from bench.options import Options


def test_figures_of_each_cycle_are_differences_to_the_preset(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cycles, "PLAYS", 3_000)
    monkeypatch.setattr(cycles, "PHASE", 500)
    found = cycles.run(Options(2, tmp_path, quiet=True))
    for stream in ("invented plays", "changes", "changing kernel"):
        assert found[stream].keys() == cycles.VARIANTS.keys()
        assert 10.0 < found[stream][cycles.BASE]["mistakes"]["mean"] < 50.0
        assert found[stream]["4000"] == {  # so short a stream has the same maps
            "mistakes": {"mean": 0.0, "error": 0.0},
            "log_loss": {"mean": 0.0, "error": 0.0},
        }
        assert found[stream][cycles.OTHER_SEED] != found[stream]["4000"]
