"""One set of versions for all supported Pythons."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SUPPORTED = SpecifierSet(PROJECT["project"]["requires-python"])


@pytest.mark.parametrize(
    ("lock", "least"),
    [("requirements.lock", 20), ("bench/peers/requirements.lock", 20), ("bench/peers/vowpal.lock", 1)],
)
def test_each_package_has_one_version(lock: str, least: int) -> None:
    names = re.findall(r"^([\w.-]+)(?:\[.*\])?==", (ROOT / lock).read_text(), re.MULTILINE)
    assert len(names) >= least
    assert sorted(set(names)) == sorted(names)


def test_classifiers_and_the_lock_name_the_supported_pythons() -> None:
    versions = [f"3.{minor}" for minor in range(30)]
    supported = [version for version in versions if SUPPORTED.contains(version)]
    names = [each.rsplit(" ", 1)[1] for each in PROJECT["project"]["classifiers"] if "Python" in each]
    assert names == supported
    [marker] = map(Marker, PROJECT["tool"]["uv"]["environments"])
    inside = {"python_full_version": f"{supported[-1]}.9", "sys_platform": "linux"}
    assert marker.evaluate(inside)
    assert not marker.evaluate(
        inside | {"python_full_version": f"{versions[versions.index(supported[-1]) + 1]}.0"}
    )
