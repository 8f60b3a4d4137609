from __future__ import annotations

from pathlib import Path

from bench.kuairand import TARGETS, run
from bench.options import Options
from pipeline.features.feature_set import FEATURES

HEADER = "user_id,video_id,time_ms,duration_ms,play_time_ms,is_click,long_view,label"
DAY = 86_400_000


def test_rows_are_taken_by_time_and_the_weeks_apart(tmp_path: Path) -> None:
    (tmp_path / "kuairand").mkdir()
    rows = [
        f"{i % 3},{i % 4},{(i * 7 % 20) * DAY},{1_000 * i},{i % 5 * DAY},"
        f"{i % 2},{int(i % 3 == 0)},{int(i > 2)}"
        for i in range(20)
    ]
    (tmp_path / "kuairand" / "log.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    found = run(Options(1, tmp_path, quiet=True))
    assert (found["events"], found["in_first_week"]) == (20, 7)
    assert found["is_click"]["majority"] == 50.0
    for target in TARGETS:
        differences = {"effects_less_newton", "declared_less_effects_delayed"}
        contenders = found[target].keys() - {"majority", *differences}
        own = {"declared", "newton_declared", "effects_delayed", "declared_delayed"}
        assert contenders == {*FEATURES, "newton", "running_means", *own}
        for figures in (found[target][name] for name in contenders):
            first, second = (
                round(figures[week]["mistakes"] * n / 100)
                for week, n in (("first_week", 7), ("second_week", 13))
            )
            assert round(figures["all"]["mistakes"] * 20 / 100) == first + second
