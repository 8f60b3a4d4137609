"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # machines differ; time is never asserted
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def kuairec() -> Path:
    """The folder of real KuaiRec rows; they are not part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("FORKS_TEST_DATA", beside)) / "kuairec"
    if not folder.is_dir():
        pytest.skip(f"no KuaiRec files in {folder}; FORKS_TEST_DATA may name the folder above theirs")
    return folder
