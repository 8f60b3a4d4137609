"""Tables and numbers for a terminal."""

from __future__ import annotations

from rich.table import Table


def plain_table() -> Table:
    """Return a table without borders, whose header is bold."""
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold")


def number_or_dash(value: float | None, spec: str = ".4f") -> str:
    """Format a number, or return a dash for a number that is not defined.

    Parameters
    ----------
    value
        Number, or None.
    spec
        Format specification of the number.

    Examples
    --------
    >>> number_or_dash(0.25), number_or_dash(0.25, ".0%"), number_or_dash(None)
    ('0.2500', '25%', '-')
    """
    return "-" if value is None else format(value, spec)
