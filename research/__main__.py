"""`python -m research`: run the papers' experiments from a checkout."""

from __future__ import annotations

import sys

OWN = frozenset({"forks", "pipeline", "research"})


def main() -> None:
    """Run the command; name a package that it needs and that is not installed."""
    try:
        from research.command import run  # noqa: PLC0415 -- a failing import is reported below

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in OWN:
            raise
        sys.exit(
            f"error: the Python package {package} is not installed; the experiments need the checkout's "
            "environment: run `make setup`, then `.venv/bin/python -m research`"
        )


if __name__ == "__main__":
    main()
