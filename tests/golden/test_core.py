from __future__ import annotations

import json
from pathlib import Path

from tests.golden.__main__ import FILE, KUAIREC, digests

RECORDED = json.loads(FILE.read_text())["core"]


def test_invented_replays_write_the_recorded_bytes() -> None:
    found = digests(None)
    assert len(found) == 5
    assert found == {name: RECORDED[name] for name in found}


def test_replays_of_the_sample_write_the_recorded_bytes(kuairec: Path) -> None:
    assert digests(kuairec, invented=False) == {name: RECORDED[name] for name in KUAIREC.values()}
