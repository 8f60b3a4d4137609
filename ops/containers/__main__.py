"""Try docker-compose.yml and ops/Dockerfile, as they are, with an engine of its own: ops/try-compose."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from ops.containers.engine import running_engine
from ops.containers.images import make_stand_ins
from ops.containers.packages import fetch
from ops.containers.process import TrialError
from ops.containers.trial import Trial

TEXT = """
It needs root on a Debian, whose packages it downloads, with those of Python and the jars of Kafka. It needs
no Docker and no registry of images. Engine, Compose and buildx are unpacked into a temporary folder. Images
that only a registry has are replaced by stand-ins, and the end says by which. It takes five to ten minutes,
and leaves nothing behind.
"""


def main() -> int:
    """Run the trial and say what was found; return the exit code."""
    argparse.ArgumentParser("ops/try-compose", description=__doc__, epilog=TEXT).parse_args()
    if os.geteuid() != 0:
        print("error: an engine needs root", file=sys.stderr)
        return 2
    begin = time.monotonic()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that the engine is ended, too

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:5.0f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="forks-try-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # containers mount files of it, as other users
        try:
            programs = fetch(folder / "packages")
            say("the engine's packages are unpacked")
            data = folder / "engine"
            data.mkdir()
            with running_engine(data, programs) as engine:
                version = "{{.Server.Version}}"
                say(
                    f"Docker Engine {engine.docker('version', '--format', version).strip()}, "
                    f"Compose {engine.docker('compose', 'version', '--short').strip()}"
                )
                (folder / "images").mkdir()
                stand_ins = make_stand_ins(engine, programs, folder / "images")
                say("stand-ins for images are made")
                Trial(engine, folder, say).run()
        except TrialError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print("passed. Not the images themselves, but stand-ins of the same names were used:")
    for image, what in stand_ins.items():
        print(f"  {image}: {what}")
    print("  grafana/grafana: none. Grafana and what it is provisioned with were left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
