from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.sources.rows import read_rows
from tests.support.slates import SLATES


def test_tables_have_no_slates(tmp_path: Path) -> None:
    path = tmp_path / "plays.jsonl"
    path.write_text("{}\n")
    with pytest.raises(ConfigError, match=r"stream\.interactions\.items: interactions are slates"):
        read_rows(path, SLATES, 0)
