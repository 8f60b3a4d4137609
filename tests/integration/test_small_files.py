"""What `stream init`, `evaluate` and `replay` say to small files of all kinds, held to a record.

``FORKS_RECORD_FILES=1`` writes the record anew.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import ForksError
from tests.support.small_files import SmallFile, small_files

TOLD = re.compile(
    r"(time|time_unit|time_format|time_of_day|value|value_kind|signals|kind|above|offset) = "
    r"|#   /|# (Left|Other|Rows|Only)|# .* guess"
)
"""Lines of drafts that are recorded."""
RECORD = Path(__file__).parent / "small_files.txt"


def run(*words: str) -> tuple[str, str, BaseException | None]:
    """Return what a command prints, its errors, and how it ends."""
    done = CliRunner().invoke(app, [*words])
    assert done.exception is None or isinstance(done.exception, ForksError | SystemExit), done.exception
    return done.stdout, done.stderr, done.exception


def said(stderr: str, error: BaseException | None) -> Iterator[str]:
    """Yield the notes and the error, without what depends on the machine."""
    for line in stderr.splitlines():
        if line.startswith(("note: ", "warning: ", "  ")):
            yield line.strip()
    if isinstance(error, ForksError):
        for line in str(error).splitlines():
            yield line.strip() if line.startswith(" ") else f"error: {line}"


def story(file: SmallFile, prefix: str) -> Iterator[str]:
    """Yield what the commands say to a file."""
    if file.content is not None:
        Path(file.name).write_bytes(file.content)
    text, stderr, error = run("stream", "init", file.name, *file.options)
    yield from (f"init: {line}" for line in said(stderr, error))
    if error is not None:
        return
    yield from (f"draft: {line}" for line in text.splitlines() if TOLD.match(line))
    Path("stream.toml").write_text(text)
    Path("forks.toml").write_text('stream = "stream.toml"\n')
    text, stderr, error = run("evaluate", file.name, "--json", "--set", "budget=10", "--set", "cycle=20")
    yield from (f"evaluate: {line}" for line in said(stderr, error))
    if not text:
        return
    found = json.loads(text)
    counters, lost = found["counters"], found["losses"]["lost"]
    alone = counters["interactions"] - counters["labels"]
    yield f"evaluate: {found['rows']} rows, {found['labelled']} labelled, {lost} lost, {alone} without label"
    told = found["labelled"] + lost + found["losses"]["late"] + alone
    assert told == found["rows"], "a row is not accounted for"
    run("topics", "create", "--prefix", prefix)
    text, stderr, error = run("replay", file.name, "--prefix", prefix, "--json")
    assert error is None
    sent = json.loads(text)
    assert (sent["interactions"], sent["labels"]) == (counters["interactions"], counters["labels"])
    assert sent["skipped"] == found["skipped"]
    yield f"replay: {sent['interactions']} interactions and {sent['labels']} labels"


@pytest.mark.parametrize("kind", [each.kind for each in small_files()])
def test_each_file_has_an_outcome(
    kind: str, bootstrap: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP", bootstrap)
    [file] = [each for each in small_files() if each.kind == kind]
    found = [*story(file, topic_prefix)]
    if os.environ.get("FORKS_RECORD_FILES"):
        write(kind, found)
    assert found == read()[kind]


def read() -> dict[str, list[str]]:
    """Return what is recorded, by kind of file."""
    parts = RECORD.read_text().split("\n\n") if RECORD.is_file() else []
    return {lines[0].strip("[]"): lines[1:] for lines in (part.strip().splitlines() for part in parts)}


def write(kind: str, lines: list[str]) -> None:
    """Record what is said to a file."""
    known = read() | {kind: lines}
    kinds = [each.kind for each in small_files() if each.kind in known]
    RECORD.write_text("\n\n".join("\n".join([f"[{each}]", *known[each]]) for each in kinds) + "\n")
