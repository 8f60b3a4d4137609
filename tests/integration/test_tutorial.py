"""The tutorial, followed to the letter.

All `console` blocks of the page run in one shell, in their order. A line that begins with `$` is a command,
lines that begin with `>` continue it, and what follows is what it prints: on standard output, since progress
and logs go elsewhere. There, `...` stands for any text within a line, and for any lines where it is alone.
Several spaces count as one, since columns may be wider, and those at the end of a line do not count.

The block `sh` before them is what brought this test here: a clone, `make setup`, and its programs on the
path. The ports of the page are replaced by free ones, and the home folder by a temporary one. Nothing else is
changed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.broker.jars import cache_folder
from pipeline.broker.launch import free_ports
from tests.integration.harness import FORKS
from tests.support.prometheus import needs_promtool

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
PORTS = ("9092", "9100", "9090")
"""Ports of the page: Kafka, the worker, Prometheus."""
END = "the command has ended"


class Step(NamedTuple):
    """A command of the page, and what it prints."""

    command: str
    output: str


def steps(text: str) -> Iterator[Step]:
    """The commands of the page in their order."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        command, output = list[str](), list[str]()
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield Step("\n".join(command), "\n".join(output))
                command, output = [line[2:]], []
            elif re.match(r">( |$)", line) and not output:
                command.append(line[2:])
            else:
                output.append(line)
        yield Step("\n".join(command), "\n".join(output))


def matches(shown: str, printed: str) -> bool:
    """Whether a command prints what the page shows.

    >>> matches("up ... s, one partition", "up 1.14 min, one partition")
    True
    """
    pattern = "".join(_pattern(line) for line in _lines(shown))
    lines = "".join(f"{line}\n" for line in _lines(printed))
    return re.fullmatch(pattern, lines) is not None


def _pattern(line: str) -> str:
    """Three dots stand for lines, or for a part of one; before an s, for a time, which may be minutes."""
    if line == "...":
        return r"(?:[^\n]*\n)*"
    time = re.escape(line).replace(r"\.\.\.\ s", r"[^\n]*?\ (?:ms|s|min|h)")
    return time.replace(r"\.\.\.", r"[^\n]*?") + r"\n"


def _lines(text: str) -> list[str]:
    return [re.sub(" +", " ", line.rstrip()) for line in text.splitlines()]


class Shell:
    """A shell in which one command runs after the other."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=environment,
            text=True,
            start_new_session=True,  # a group of processes that can be ended together
        )

    def run(self, command: str) -> str:
        """Run a command; return what it prints."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\necho '{END}'\n")
        self.process.stdin.flush()
        lines = list[str]()
        for line in self.process.stdout:
            if line.endswith(f"{END}\n"):
                return "".join(lines) + line.removesuffix(f"{END}\n")
            lines.append(line)
        raise AssertionError(f"the shell has ended with {self.process.wait()}")

    def close(self) -> None:
        """End the shell, whatever it does, and what it has started and not stopped."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate()
        self._log.close()


@contextmanager
def shell(home: Path) -> Iterator[Shell]:
    """A shell with the programs of this environment; at the end, nothing that it started is left."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FORKS_")}
    environment |= {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FORKS_CACHE_DIR": str(cache_folder()),
        "COLUMNS": "80",
    }
    if url := os.environ.get("FORKS_MAVEN_URL"):
        environment["FORKS_MAVEN_URL"] = url
    opened = Shell(environment, home / "stderr.log")
    try:
        yield opened
    finally:
        opened.close()
        folder = home / "forks-tutorial"
        if folder.exists():  # stopped by the page, unless something failed before that
            subprocess.run([*FORKS, "broker", "stop"], check=True, cwd=folder, env=environment)


def shown(home: Path) -> str:
    """The ends of all logs, for a failure."""
    logs = [*home.glob("*.log"), *home.glob("forks-tutorial/*.log")]
    return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in logs)


@pytest.mark.slow
@needs_promtool
def test_every_step_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text()
    for port, free in zip(PORTS, free_ports(len(PORTS)), strict=True):
        assert f"127.0.0.1:{port}" in text
        text = re.sub(rf"(?<=127\.0\.0\.1:){port}\b|(?<=--port ){port}\b", str(free), text)
    with shell(tmp_path) as bash:
        for step in steps(text):
            printed = bash.run(step.command)
            assert matches(step.output, printed), f"{step.command}\n{printed}\n{shown(tmp_path)}"


def test_the_page_has_commands_in_console_blocks_alone_but_for_the_set_up() -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [setup] = [content for kind, content in blocks if kind != "console"]
    assert [line.split("#")[0].strip() for line in setup.splitlines()] == [
        "make setup",
        ". .venv/bin/activate",
    ]
    assert all(content.startswith("$ ") for kind, content in blocks if kind == "console")


def test_outputs_are_compared() -> None:
    assert matches("a ... c\n...\nlast", "a b c \nmore\nand more\nlast\n")
    assert matches("a\n...", "a\n")
    assert matches("", "")
    for shown, printed in [
        ("a", "b"),
        ("a", "a\nb"),
        ("a", ""),
        ("", "a"),
        ("a ... c", "a b\nc"),
        ("1.5", "105"),
    ]:
        assert not matches(shown, printed)
    page = "```console\n$ one\n> two\n\nout\n$ three\n```\n```console\n$ cat << END\n> \n>\n> END\n```\n"
    assert [*steps(page)] == [Step("one\ntwo", "\nout"), Step("three", ""), Step("cat << END\n\n\nEND", "")]
