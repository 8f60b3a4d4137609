"""Vowpal Wabbit on a table: as it comes, with pairs of features, and with two other optimisers.

Each category is in a namespace of one letter, all numbers are in another one, so that `-q ::` has weights for
each pair. A number of 0 is no feature there, nor is one that is missing. All else, such as the size of the
table of weights, is as it comes.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from string import ascii_letters
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

import numpy as np

from bench.peers.environment import FOLDER, environment
from bench.stream_figures import Run, log_odds
from bench.stream_tables import Table
from pipeline.errors import ConfigError

PROGRAM: Final = Path(__file__).parent / "peers" / "vowpal.py"
LOCK: Final = PROGRAM.with_suffix(".lock")
CLASSES: Final = "--loss_function logistic --link logistic"
NUMBERS: Final = "--loss_function squared"
SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "vowpal_wabbit": "",
        "vowpal_wabbit -q ::": "-q ::",
        "vowpal_wabbit --ftrl": "--ftrl",
        "vowpal_wabbit --coin": "--coin",
    }
)
"""Options by the name of the learner."""
CATEGORY_NAMESPACES: Final = ascii_letters[:-1]
NUMBERS_NAMESPACE: Final = ascii_letters[-1]
SPECIAL: Final = re.compile(r"[\s:|]")
"""Characters that have a meaning in Vowpal Wabbit's text."""


def vowpal_learners(*, quiet: bool) -> dict[str, Callable[[Table], Run]]:
    """Return what runs Vowpal Wabbit, by the name of its settings; it is installed unless it was before.

    Raises
    ------
    ConfigError
        It cannot be installed.
    """
    python = environment(FOLDER.with_name("vowpal"), LOCK)
    return {name: partial(_run, python, options, quiet) for name, options in SETTINGS.items()}


def _run(python: Path, options: str, quiet: bool, table: Table) -> Run:
    options = f"{NUMBERS if table.positive is None else CLASSES} {options}"
    with TemporaryDirectory() as folder:
        events, predictions = Path(folder) / "events.txt", Path(folder) / "predictions.json"
        events.write_text("".join(f"{line}\n" for line in lines(table)))
        command: list[str | Path] = [
            *(python, PROGRAM, f"--events={events}", f"--predictions={predictions}"),
            *(f"--options={options}", *(["--quiet"] if quiet else [])),
        ]
        try:
            ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"Vowpal Wabbit with {options} failed on {table.name}: {error}") from error
        predicted = np.array(json.loads(predictions.read_text()))
    return Run(predicted if table.positive is None else log_odds(predicted), float(ended.stdout))


def lines(table: Table) -> Iterator[str]:
    """Yield the text of each event: its label, a blank, and its features.

    Raises
    ------
    ConfigError
        The table has more categories than there are letters.
    """
    categories = {**table.entities, **table.categories}
    if len(categories) > len(CATEGORY_NAMESPACES):
        raise ConfigError(
            f"{table.name} has {len(categories)} categories; there are letters for {len(CATEGORY_NAMESPACES)}"
        )
    columns = [
        [f"|{letter} {name}={SPECIAL.sub('_', text)}" for text in texts]
        for letter, (name, texts) in zip(CATEGORY_NAMESPACES, categories.items(), strict=False)
    ]
    numbers = table.features()
    labels = table.labels if table.positive is None else np.where(table.positive, 1, -1)
    for row, label in enumerate(labels.tolist()):
        parts = [column[row] for column in columns]
        parts += [f"|{NUMBERS_NAMESPACE}"] if numbers else []
        parts += [f"{name}:{float(each[row])!r}" for name, each in numbers.items()]
        yield f"{label} {' '.join(parts)}"
