"""Options that several commands share, so that their names and help texts are the same everywhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

if TYPE_CHECKING:
    from pipeline.config.settings import Config

Flags: TypeAlias = dict[str, str | None]
"""Settings of the command line, by dotted name."""
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file. Default: ./forks.toml, if there is one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
JsonObject = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLog = Annotated[bool, typer.Option("--json", help="Log as JSON, one object a line.")]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        help="A stream's labels, in a table of their own with the ids of their events.",
        show_default="in the table of events",
    ),
]
_KAFKA: Final = {
    "bootstrap": Annotated[
        str | None,
        typer.Option(help="Kafka's address, host:port. Default: FORKS_KAFKA__BOOTSTRAP, then the TOML file."),
    ],
    "prefix": Annotated[str | None, typer.Option(help="Prefix of every topic's name, such as prod.")],
    "group": Annotated[str | None, typer.Option(help="The consumer group.")],
}


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    """What the command line says of the configuration."""

    file: Path | None
    """The file that `--config` names."""
    flags: Flags
    """Settings that win over those of the file and the environment."""

    def load(self) -> Config:
        """Load the configuration; `pipeline.config.loader.load` says what is raised."""
        from pipeline.config.loader import load

        return load(self.file, self.flags)

    def including(self, flags: Flags) -> ConfigOptions:
        """Return these options, with settings that a command has options of its own for."""
        return ConfigOptions(self.file, self.flags | flags)


def kafka_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options `--config`, `--bootstrap` and `--prefix`.

    Parameters
    ----------
    command
        Function with a parameter `options`, in whose place the options stand, and which holds them.
    """
    return _with_options(command, ("bootstrap", "prefix"))


def group_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `kafka_options`, and `--group`."""
    return _with_options(command, ("bootstrap", "prefix", "group"))


def _with_options(command: Callable[..., None], names: tuple[str, ...]) -> Callable[..., None]:
    @functools.wraps(command)
    def run(*, config: Path | None, **given: Any) -> None:
        flags = {f"kafka.{name}": given.pop(name) for name in names}
        command(options=ConfigOptions(config, flags), **given)

    annotations = {"config": ConfigFile} | {name: _KAFKA[name] for name in names}
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in annotations.items()
    ]
    parameters: list[Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        parameters += added if each.name == "options" else [each.replace(kind=Parameter.KEYWORD_ONLY)]
    # Typer reads the options of a command from these two.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # wraps hides that it is one
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
