"""A Docker Engine in namespaces of its own: networks, ports, mounts and processes that end with it.

slirp4netns connects its network namespace to that of this machine, as for an engine without root. So no rule
of the machine's firewall changes, and no published port is in the way of another program's.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ops.containers.packages import Programs
from ops.containers.process import TrialError, run

WITH_US: Final = ("setpriv", "--pdeathsig", "TERM")
"""Begins commands that end when this process ends, however it does."""
NAMES: Final = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
RESOLVER: Final = "10.0.2.3"
"""Address of slirp4netns that answers for this machine's resolvers."""
START_TIMEOUT: Final = 60.0
END_TIMEOUT: Final = 60.0
SCRIPT: Final = r"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
ip link set lo up
read -r _
exec dockerd --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/dockerd.pid" \
  --host "unix://$1/docker.sock" --group root --dns "$2" --cgroup-parent "$3" \
  --exec-opt native.cgroupdriver=cgroupfs
"""


class Engine:
    """A running engine.

    Parameters
    ----------
    folder
        Its folder.
    programs
        Its programs.
    init
        The process that is the first one of its namespaces.
    """

    def __init__(self, folder: Path, programs: Programs, init: int) -> None:
        self._folder = folder
        self._init = init
        plugins = folder / "client" / "cli-plugins"
        plugins.mkdir(parents=True)
        for plugin in (programs.folder / "usr/libexec/docker/cli-plugins").iterdir():
            (plugins / plugin.name).symlink_to(plugin)
        self.environment = programs.environment | {
            "DOCKER_HOST": f"unix://{folder}/docker.sock",
            "DOCKER_CONFIG": str(folder / "client"),
        }

    def docker(
        self, *words: str | Path, folder: Path | None = None, timeout: float = 600.0, **variables: str
    ) -> str:
        """Run the client of the engine, and return what it wrote."""
        variables = self.environment | variables
        return run(["docker", *words], environment=variables, folder=folder, timeout=timeout)

    def inside(self, *command: str) -> str:
        """Run a program among the engine's processes, with the published ports at its own 127.0.0.1."""
        return run(["nsenter", "--net", "--pid", "--target", str(self._init), *command])


@contextmanager
def running_engine(folder: Path, programs: Programs) -> Iterator[Engine]:
    """Start an engine, and end all that it started.

    Parameters
    ----------
    folder
        An empty folder for its data.
    programs
        Its programs.

    Yields
    ------
    Engine
        The engine, when it answers.

    Raises
    ------
    TrialError
        It does not start here.
    """
    group = f"forks-try-{os.getpid()}"
    variables = os.environ | programs.environment
    log = (folder / "dockerd.log").open("wb")
    start = [*WITH_US, "unshare", *NAMES, "bash", "-c", SCRIPT, "dockerd", str(folder), RESOLVER, group]
    with (
        log,
        subprocess.Popen(start, stdin=subprocess.PIPE, stdout=log, stderr=log, env=variables) as parent,
    ):
        try:
            init = _child(parent)
            network = [*WITH_US, "slirp4netns", "--configure", "--disable-host-loopback", str(init), "tap0"]
            with subprocess.Popen(network, stdout=log, stderr=log, env=variables) as slirp:
                try:
                    assert parent.stdin
                    parent.stdin.write(b"go\n")
                    parent.stdin.close()
                    engine = Engine(folder, programs, init)
                    _wait_until_it_answers(engine, parent, folder / "dockerd.log")
                    yield engine
                finally:
                    _end(parent, init)
                    slirp.terminate()
        finally:
            parent.kill()
    _remove_groups(group)


def _child(parent: subprocess.Popen[bytes]) -> int:
    """Return the first process of the new namespaces."""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and parent.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.05)
    raise TrialError("the kernel gives no namespaces here: unshare failed, see its message above")


def _wait_until_it_answers(engine: Engine, parent: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            engine.docker("version")
        except TrialError as error:
            if parent.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
                continue
            end = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise TrialError(f"dockerd does not start here. The end of its log:\n{end}") from error
        return


def _end(parent: subprocess.Popen[bytes], init: int) -> None:
    """End the engine, which ends its containers; then the kernel ends what is left in its namespaces."""
    if parent.poll() is None:
        run(["kill", "-TERM", str(init)])
        try:
            parent.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            run(["kill", "-KILL", str(init)])


def _remove_groups(name: str) -> None:
    """Remove the control groups of the engine, which outlast it."""
    for top in Path("/sys/fs/cgroup").glob(f"**/{name}"):
        for folder, _, _ in os.walk(top, topdown=False):
            Path(folder).rmdir()
