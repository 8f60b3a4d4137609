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
