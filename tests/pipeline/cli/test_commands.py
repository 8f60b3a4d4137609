"""The commands against a record of those of version 0.1: `commands_0_1.jsonl`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from tests.pipeline.cli.command_record import describe

RECORD: Final = Path(__file__).with_name("commands_0_1.jsonl")
MENDED: Final = {
    "forks checkpoint",
    "forks checkpoint recover --partition",
    "forks config",
    "forks config init",
    "forks demo --stream",
    "forks evaluate",
    "forks evaluate --limit",
    "forks evaluate data",
    "forks evaluate --set",
    "forks inspect --limit",
    "forks inspect --partition",
    "forks rebuild --set",
    "forks redrive --offsets",
    "forks redrive --partition",
    "forks redrive --reason",
    "forks redrive --since",
    "forks redrive --until",
    "forks replay --limit",
    "forks stream check --messages",
    "forks stream init path",
    "forks synth --keep",
    "forks top --once",
    "forks topics acls --role",
    "forks replay path",
}
"""What has another help text since: a plainer sentence, or one more of what the command says."""


ADDED = {
    *(f"forks stream init --{option}" for option in ("entity", "event-id", "label", "time", "time-format")),
    *(f"forks {command} --labels" for command in ("demo", "evaluate", "replay")),
}
"""What was not there."""


def test_commands_options_defaults_help_texts_and_exit_codes_are_those_of_0_1() -> None:
    recorded = msgspec.json.decode(b"[" + b",".join(RECORD.read_bytes().splitlines()) + b"]")
    now = [each for each in describe() if each["name"] not in ADDED]
    assert [each["name"] for each in now] == [each["name"] for each in recorded]
    changed = [(each, before) for each, before in zip(now, recorded, strict=True) if each != before]
    assert {each["name"] for each, _ in changed} == MENDED
    for each, before in changed:
        assert each | {"help": ""} == before | {"help": ""}, "only the help text was mended"
