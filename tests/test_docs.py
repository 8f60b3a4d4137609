"""Paths, links and names in the documentation against what is there, and its length."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for path in chain([ROOT / "README.md", ROOT / "CONTRIBUTING.md"], (ROOT / "docs").rglob("*.md"))
)
BASES: Final = (ROOT, ROOT / "pipeline", ROOT / "forks", ROOT / "ops" / "kubernetes")
"""Folders that paths in the text start from."""
DATA: Final = ("libsvm/", "kuairec/", "graphs/", "site/")
"""What paths start with that a user has or a command makes."""

CODE: Final = re.compile(r"`([^`\n]+)`")
PATH: Final = re.compile(r"[\w.-]+/(?:[\w.-]+/)*(?:[\w.-]+\.(?:py|toml|json|md|yml|lock))?")
MEMBER: Final = re.compile(r"([A-Z][a-z]\w*)\.(\w+)")
LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def text_of(page: str) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)


@cache
def sources() -> dict[str, list[str]]:
    """Return the files in which each class of the product is, as text."""
    found: dict[str, list[str]] = {}
    for path in chain(ROOT.glob("forks/**/*.py"), ROOT.glob("pipeline/**/*.py")):
        text = path.read_text()
        for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
            found.setdefault(name, []).append(text)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_the_text_exist(page: str) -> None:
    paths = [
        code for code in CODE.findall(text_of(page)) if PATH.fullmatch(code) and not code.startswith(DATA)
    ]
    assert [path for path in paths if not any((base / path).exists() for base in BASES)] == []


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    links = [link for link in LINK.findall(text_of(page)) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_members_of_classes_exist(page: str) -> None:
    members = [match.groups() for code in CODE.findall(text_of(page)) if (match := MEMBER.fullmatch(code))]
    for name, member in members:
        texts = sources().get(name)
        assert texts, f"no class {name}"
        assert any(re.search(rf"\b{member}\b", text) for text in texts), f"no {name}.{member}"
