"""The command as a module: help, and a package that is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from research import __main__ as module


def test_help_names_the_experiments() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "research", "--help"], capture_output=True, text=True, check=True
    )
    assert "table2" in done.stdout
    assert "findings" in done.stdout


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "research.command", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"the Python package typer is not installed.* run `make setup`"):
        module.main()


def test_a_module_of_the_checkout_that_is_missing_is_no_matter_of_setup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "research.command", None)
    with pytest.raises(ModuleNotFoundError):
        module.main()
