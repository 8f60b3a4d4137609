from __future__ import annotations

from importlib import import_module

import pytest

from bench.__main__ import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_name_has_something_to_run(name: str) -> None:
    assert callable(import_module(f"bench.{name}").run)
