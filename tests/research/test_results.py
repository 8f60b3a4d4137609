"""The page of findings says what the results of the experiments say."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "findings.md").read_text()


def lines_of(name: str) -> list[dict[str, Any]]:
    lines = (ROOT / "research" / "results" / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


CLAIMS: Final = lines_of("claims.jsonl")


def test_the_page_counts_the_claims_that_hold() -> None:
    by_command = defaultdict[str, list[bool]](list)
    for each in CLAIMS:
        by_command[each["command"]].append(each["holds"])
    stated = re.findall(r"^\| `(.+)` \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    counts = {command: (int(holding), int(claims)) for command, holding, claims in stated}
    assert counts == {command: (sum(found), len(found)) for command, found in by_command.items()}


@pytest.mark.parametrize("figure", sorted(set(re.findall(r"\d+\.\d+(?: ± \d+\.\d+)?", PAGE))))
def test_each_figure_of_the_page_is_one_of_the_results(figure: str) -> None:
    said = [each["numbers"] for each in CLAIMS]
    rows = [value for row in lines_of("tables.jsonl") for value in row.values()]
    whole = re.compile(rf"(?<![\d.]){re.escape(figure)}(?!\d)")
    section = {"5.1", "0.3"}  # of the paper; a difference of two figures
    assert figure in section or any(map(whole.search, [*said, *rows]))


def test_claims_and_rows_are_of_the_same_experiments() -> None:
    experiments = {each["experiment"] for each in CLAIMS}
    assert experiments >= {each["experiment"] for each in lines_of("tables.jsonl")}
