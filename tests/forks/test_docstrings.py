"""Every public name of forks has a docstring, and an example where one makes sense."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import forks
from forks import validation
from tests.forks.docstrings import modules_of, undocumented

# Plain types, numbers and a table of constants need no example.
WITHOUT_EXAMPLE = {"ARITHMETIC", "LOSSES", "LossName", "State"}


def public_names() -> list[Any]:
    names = [getattr(forks, name) for name in forks.__all__ if name not in WITHOUT_EXAMPLE]
    names += filter(inspect.isfunction, (getattr(validation, name) for name in validation.__all__))
    return [pytest.param(thing, id=f"{thing.__module__}.{thing.__name__}") for thing in names]


def public_classes() -> list[type]:
    return [thing for name in forks.__all__ if inspect.isclass(thing := getattr(forks, name))]


def examples(thing: object) -> str:
    lines = (inspect.getdoc(thing) or "").splitlines()
    return "\n".join(line for line in lines if line.strip().startswith((">>>", "...")))


def public_members(cls: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(cls).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
            yield name, member


@pytest.mark.parametrize("module", list(modules_of(forks)), ids=lambda module: module.__name__)
def test_modules_and_their_public_functions_and_classes_have_docstrings(module: ModuleType) -> None:
    assert module.__doc__
    assert not undocumented(module)


@pytest.mark.parametrize("thing", public_names())
def test_public_names_have_an_example_that_doctest_runs(thing: object) -> None:
    assert ">>>" in examples(thing)


@pytest.mark.parametrize("cls", public_classes())
def test_public_members_have_a_docstring_and_stand_in_an_example(cls: type) -> None:
    for name, member in public_members(cls):
        assert inspect.getdoc(member), name
        assert f".{name}" in examples(cls) + examples(member), name
