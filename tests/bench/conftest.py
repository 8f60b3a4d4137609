from __future__ import annotations

from pathlib import Path

import pytest

HEADER = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve plays, one a second, each of two and a half seconds, of four videos with a tag each."""
    rows = [f"{i % 3},{i % 4},2500,4000,,,{1000 + i},{0.5 + i % 2}" for i in range(12)]
    (tmp_path / "small_matrix.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    tags = [f"{video},[{video % 2}]" for video in range(4)]
    (tmp_path / "item_categories.csv").write_text("\n".join(["video_id,feat", *tags]) + "\n")
    return tmp_path


KUAIRAND = "user_id,video_id,time_ms,is_click,long_view,label,play_time_ms,duration_ms"
DAY = 86_400_000


@pytest.fixture
def data(folder: Path) -> Path:
    """The twelve plays in both files of KuaiRec, and sixteen of KuaiRand, one a day."""
    (folder / "kuairec").mkdir()
    matrix = (folder / "small_matrix.csv").read_text()
    (folder / "kuairec" / "big_matrix_1000.csv").write_text(matrix)
    for name in ("small_matrix.csv", "item_categories.csv"):
        (folder / name).rename(folder / "kuairec" / name)
    (folder / "kuairand").mkdir()
    rows = [f"{i % 5},{i % 4},{i * DAY},{i % 2},{i % 3 % 2},{int(i > 9)},{i},10" for i in range(16)]
    (folder / "kuairand" / "log.csv").write_text("\n".join([KUAIRAND, *rows]) + "\n")
    return folder
