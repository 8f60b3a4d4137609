from __future__ import annotations

from pathlib import Path

import pytest

from bench.options import Options

for package in ("authlib", "fastavro", "google.protobuf"):
    pytest.importorskip(package, reason="the extra `registry` is not installed")

from bench.decode import run  # noqa: E402 - needs the extra


def test_each_format_is_measured() -> None:
    found = run(Options(1, Path(), quiet=True, events=5))
    assert {"json", "json-schema", "avro", "protobuf"} < found["inputs"].keys()
    for figures in found["outputs"].values():
        assert figures["avro, bytes"] < figures["json, bytes"]
        assert all(value > 0 for value in figures.values())
