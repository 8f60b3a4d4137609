"""Digests of the golden replays as JSON: `python -m tests.golden`; `--record` writes `digests.json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pipeline.config.feature_layout import FeatureKind
from tests.golden import core, scenarios

KUAIREC: Final[Mapping[FeatureKind, str]] = MappingProxyType(
    {"effects": "kuairec", "running": "kuairec, running"}
)
"""Replays of the sample by kind of features."""
FILE = Path(__file__).with_name("digests.json")


def digests(folder: Path | None, invented: bool = True) -> dict[str, Any]:
    """Digests of the replays through the pure core, by replay; `folder` has the sample of KuaiRec."""
    found: dict[str, Any] = {}
    if invented:
        every = {"batch": 150, "snapshot_every": 5}
        found["invented"] = core.replay(scenarios.invented(shared=True), **every)
        found["invented, running"] = core.replay(scenarios.invented(shared=True, kind="running"), **every)
        found["invented, running, all labels"] = core.replay(
            scenarios.invented(shared=False, policy=False, kind="running"), batch=400, snapshot_every=3
        )
        found["categories"] = core.replay(scenarios.categories(), **every)
        found["slates"] = core.replay(scenarios.slates(), **every)
    if folder is not None:
        for kind, name in KUAIREC.items():
            found[name] = core.replay(scenarios.kuairec(folder, kind), batch=5_000, snapshot_every=4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kuairec", type=Path, help="folder with the shared sample")
    parser.add_argument("--sample-only", action="store_true", help="leave out the invented replays")
    parser.add_argument("--record", action="store_true", help="write the digests of the pure core")
    options = parser.parse_args()
    if not options.record:
        print(json.dumps(digests(options.kuairec, not options.sample_only), indent=2))
        return
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    recorded["core"] = recorded.get("core", {}) | digests(options.kuairec)
    FILE.write_text(json.dumps(recorded, indent=2) + "\n")


if __name__ == "__main__":
    main()
