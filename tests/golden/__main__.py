"""Digests of the golden replays as JSON: `python -m tests.golden`; `--record` writes them to `digests.json`.

The replays run in a process whose linear algebra library computes as on one kind of processor, so that the
digests hold on every x86-64 processor with AVX2.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pipeline.config.feature_layout import FeatureKind
from tests.golden.processor import ENVIRONMENT

KUAIREC: Final[Mapping[FeatureKind, str]] = MappingProxyType(
    {"effects": "kuairec", "running": "kuairec, running"}
)
"""Replays of the sample by kind of features."""
FILE = Path(__file__).with_name("digests.json")


def digests(folder: Path | None, invented: bool = True) -> dict[str, Any]:
    """Digests of the replays through the pure core, by replay; `folder` has the sample of KuaiRec."""
    from tests.golden import core, scenarios  # noqa: PLC0415 - a record does without their linear algebra

    found: dict[str, Any] = {}
    if invented:
        every = {"batch": 150, "snapshot_every": 5}
        found["invented"] = core.replay(scenarios.invented(shared=True), **every)
        found["invented, running"] = core.replay(scenarios.invented(shared=True, kind="running"), **every)
        found["invented, running, all labels"] = core.replay(
            scenarios.invented(shared=False, policy=False, kind="running"), batch=400, snapshot_every=3
        )
        found["slates"] = core.replay(scenarios.slates(), **every)
    if folder is not None:
        for kind, name in KUAIREC.items():
            found[name] = core.replay(scenarios.kuairec(folder, kind), batch=5_000, snapshot_every=4)
    return found


def digests_apart(folder: Path | None, invented: bool = True) -> dict[str, Any]:
    """Return the same from a process of its own, with the linear algebra of the recorded digests."""
    command = [sys.executable, "-m", "tests.golden", *(("--kuairec", str(folder)) if folder else ())]
    if not invented:
        command.append("--sample-only")
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": path}
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
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
    recorded["core"] = recorded.get("core", {}) | digests_apart(options.kuairec)
    FILE.write_text(json.dumps(recorded, indent=2) + "\n")


if __name__ == "__main__":
    main()
