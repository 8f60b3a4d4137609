"""The class of all commands of `forks`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


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
