"""Every public name of research has a docstring."""

from __future__ import annotations

from types import ModuleType

import pytest

import research
from tests.forks.docstrings import modules_of, undocumented


@pytest.mark.parametrize("module", list(modules_of(research)), ids=lambda module: module.__name__)
def test_modules_and_their_public_functions_and_classes_have_docstrings(module: ModuleType) -> None:
    assert module.__doc__
    assert not undocumented(module)
