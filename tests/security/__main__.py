"""Write the tables of refusals.md anew: ``python -m tests.security``."""

from __future__ import annotations

from tests.security.page import table, write
from tests.security.trials import all_trials


def main() -> None:
    """Try everything and write the tables."""
    for name, refusals in all_trials():
        write({name: table(refusals)})
        print(f"{name}: {len(refusals)} refusals")


if __name__ == "__main__":
    main()
