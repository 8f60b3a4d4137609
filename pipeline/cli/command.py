"""The class of all commands of `forks`."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

from pipeline.cli.logs import configure
from pipeline.errors import ConfigError

UsageError: Final[type[Any]] = typer.BadParameter.__bases__[0]
"""The class of errors in the words of a command line. Typer does not export it."""


class Command(TyperCommand):
    """A command that sets up logging when it runs, and not for its help or for completion."""

    def invoke(self, ctx: Any) -> Any:
        """Call the function that `main` hands over as the context's object, then run the command.

        Parameters
        ----------
        ctx
            Context of the call. Its object is None in tests, which set up logging themselves.

        Returns
        -------
        object
            What the command returns.
        """
        if ctx.obj is not None:
            ctx.obj()
        return super().invoke(ctx)


class LoggingCommand(Command):
    """A command whose `--json` is the form of its log, which a wrong option is a line of, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line.

        Parameters
        ----------
        ctx
            Context of the call.
        args
            The words.

        Returns
        -------
        list of str
            What is left of them.

        Raises
        ------
        ConfigError
            With `--json`, an option is wrong. Without it, the usage is printed.
        """
        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            if not as_json:
                raise
            configure(json=True)
            raise ConfigError(error.format_message()) from error
