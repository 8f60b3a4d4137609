"""`python -m tests.machines`: the tests on other machines, and the table of them in results.md.

A clean clone of HEAD runs all tests in fresh Debian systems, and the golden core with other libraries, for
other kinds of processors, and on aarch64. Package caches are left of it, and the logs if something fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tests.golden.__main__ import FILE
from tests.machines.place import Debian, FailedError, mirror, run

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "tests" / "machines" / "results.md"
BEGIN: Final = "<!-- table: machines -->\n"
END: Final = "<!-- end: machines -->"
HEADS: Final = (
    *("machine", "Python", "glibc", "NumPy", "SciPy", "Numba", "LLVM", "compiled for", "kernels of BLAS"),
    *("digests of the golden core", "tests"),
)
LIBRARIES: Final = ("python", "glibc", "numpy", "scipy", "numba", "llvm", "processor", "blas")
"""What is found of a machine, in the order of the table."""
EMULATED: Final = "arm64"
WHEELS: Final = "--python-version 3.13 " + " ".join(
    f"--platform manylinux{each}_aarch64" for each in ("2014", "_2_17", "_2_27", "_2_28")
)
"""Those that Debian 13 takes there."""
REPORTED: Final = {"Prescott": "Katmai"}
"""Names that OpenBLAS gives some core types, where they are not those one asks for."""
EXAMPLES: Final = """
examples:
  sudo .venv/bin/python -m tests.machines                          all, about an hour and a half
  sudo .venv/bin/python -m tests.machines --only generic haswell   some machines, whose rows alone are written
  sudo .venv/bin/python -m tests.machines --only trixie --tests "tests/forks -k sketch"
"""


@dataclass(frozen=True)
class Machine:
    """One row of the table."""

    name: str
    text: str
    suite: str = ""
    """Of Debian; the host itself without."""
    architecture: str = "amd64"
    whole: bool = False
    """README's two commands, `make demo` and `make test`; else the golden core."""
    packages: tuple[str, ...] = ()
    """Those of other versions than the lock has; a bare name is for pip to choose."""
    environment: Mapping[str, str] = field(default_factory=dict)
    minutes: float = 20


MACHINES: Final = (
    Machine("generic", "host, generic code", environment={"NUMBA_CPU_NAME": "generic"}),
    *(
        Machine(kind.lower(), f"host, BLAS for {kind}", environment={"OPENBLAS_CORETYPE": kind})
        for kind in ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX")
    ),
    Machine(
        "numpy",
        "host, NumPy for x86-64-v2",
        environment={"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    ),
    Machine(
        "libc",
        "host, C library without FMA",
        environment={"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"},
    ),
    Machine(
        "oldest",
        "host, the oldest libraries",
        packages=("numpy==2.2.*", "scipy==1.15.*", "numba==0.63.*", "llvmlite==0.46.*"),
    ),
    Machine("newest", "Debian 13, newer libraries", "trixie", packages=("numpy==2.5.*", "scipy==1.18.*")),
    Machine("bookworm", "Debian 12", "bookworm", whole=True, minutes=60),
    Machine("trixie", "Debian 13", "trixie", whole=True, minutes=60),
    Machine("forky", "Debian 14, testing", "forky", whole=True, minutes=60),
    Machine(
        "aarch64",
        "Debian 13, emulated aarch64",
        *("trixie", EMULATED),
        environment={"NUMBA_CPU_NAME": "generic"},
        minutes=90,
    ),
)


def main() -> int:
    """Try the machines, and give the exit code: 1 if bits differ or tests fail."""
    options = _options()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell in the background ignores the first
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that folders are removed
    begin = time.monotonic()

    def say(text: str) -> None:
        if not options.json:
            print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)

    logs = Path(tempfile.mkdtemp(prefix="forks-machines-logs-"))
    folder = Path(tempfile.mkdtemp(prefix="forks-machines-"))
    results: list[dict[str, Any]] = []
    good = False
    try:
        for machine in options.machines:
            say(f"{machine.name}: {machine.text}")
            result = _try(machine, folder, logs / f"{machine.name}.log", options, say)
            say(f"{machine.name}: {'; '.join(filter(None, (result['digests'], result['tests'])))}")
            results.append(result)
            if not options.tests:
                PAGE.write_text(with_rows(PAGE.read_text(), results))
        good = all(result["good"] for result in results)
    finally:
        shutil.rmtree(folder)
        if good:
            shutil.rmtree(logs)
        else:
            say(f"the logs are in {logs}")
    if options.json:
        print(json.dumps(results, indent=2))
    return 0 if good else 1


def _options() -> argparse.Namespace:
    names = [machine.name for machine in MACHINES]
    parser = argparse.ArgumentParser(
        prog="python -m tests.machines",
        description=__doc__,
        epilog="machines:\n"
        + "\n".join(f"  {each.name:12} {each.text}" for each in MACHINES)
        + "\n"
        + EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="NAME", help="these machines; default: all"
    )
    parser.add_argument(
        "--tests", metavar="ARGUMENTS", help="of pytest, in place of all tests; no table is written then"
    )
    parser.add_argument("--mirror", help="of Debian; default: that of the sources of apt")
    parser.add_argument("--json", action="store_true", help="no progress, only the result")
    options = parser.parse_args()
    options.machines = [each for each in MACHINES if options.only is None or each.name in options.only]
    if os.geteuid() != 0:
        parser.error("only root may make systems and mount what they need: run it with sudo")
    if any(machine.suite for machine in options.machines):
        if shutil.which("debootstrap") is None:
            parser.error("debootstrap is needed: apt-get install debootstrap")
        options.mirror = options.mirror or mirror()
        if options.mirror is None:
            parser.error("--mirror: the sources of apt have no mirror of Debian, so one has to be named")
    if any(machine.architecture == EMULATED for machine in options.machines) and not _emulated():
        parser.error(
            "aarch64 needs an emulator that the kernel starts, also in another root: apt-get install"
            " qemu-user-static binfmt-support; or choose other machines with --only"
        )
    return options


def _emulated() -> bool:
    """Tell if the kernel runs programs for aarch64, and holds the emulator open (F) for other roots."""
    entry = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
    return entry.exists() and re.search(r"^flags: \w*F", entry.read_text(), re.MULTILINE) is not None


def _try(
    machine: Machine, folder: Path, log: Path, options: argparse.Namespace, say: Callable[[str], None]
) -> dict[str, Any]:
    """Return the row of a machine, as it has to be shown and as JSON."""
    result: dict[str, Any] = {
        "machine": machine.text,
        "libraries": {},
        "digests": "",
        "tests": "",
        "good": False,
    }
    place = folder / machine.name
    try:
        if machine.suite:
            debian = Debian(place, log, say)
            debian.make(machine.suite, machine.architecture, options.mirror, 60 * machine.minutes)
            _clone(place / "forks", log, say)
            script = (
                _whole(options.tests)
                if machine.whole
                else _core(machine, place / "forks", "python3", log, say)
            )
            debian.run(f"cd /forks\n{script}", machine.environment, 60 * machine.minutes)
        else:
            _clone(place / "forks", log, say)
            script = (
                _core(machine, place / "forks", sys.executable, log, say)
                if machine.packages
                else _probe(sys.executable)
            )
            run(
                ("sh", "-exc", script),
                log,
                say,
                folder=place / "forks",
                environment=os.environ | machine.environment,
                lasts=60 * machine.minutes,
            )
        found = json.loads((place / "forks" / "found.json").read_text())
        apart = differences(found["core"])
        result["libraries"] = found["libraries"]
        result["digests"] = apart or "hold"
        result["good"] = not apart
        asked = machine.environment.get("OPENBLAS_CORETYPE")
        if asked and found["libraries"]["blas"] != REPORTED.get(asked, asked):
            result["digests"] += f" (no kernels for {asked} here)"
        if machine.whole:
            result["tests"], passed = summary(log.read_text())
            result["good"] &= passed
    except FailedError as error:
        result["digests"] = f"not tried: {error}"
    finally:
        if place.exists():
            shutil.rmtree(place)
    return result


def _clone(folder: Path, log: Path, say: Callable[[str], None]) -> None:
    run(
        ("git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", ROOT, folder),
        log,
        say,
        lasts=600,
    )


def _whole(tests: str | None) -> str:
    """Return the lines that run the demo and all tests, or those chosen, and show how far they are."""
    command = "make demo\nmake test" if tests is None else f"make setup && .venv/bin/pytest {tests}"
    return f"export PYTHONUNBUFFERED=1\n{command} || true\n{_probe('.venv/bin/python')}"


def _probe(python: str) -> str:
    """Return the line that replays the golden core."""
    return f"PYTHONPATH=.:wheels {python} -m tests.machines.probe > found.json\n"


def _core(machine: Machine, clone: Path, python: str, log: Path, say: Callable[[str], None]) -> str:
    """Return the lines that install what the golden core needs, and replay it.

    An emulated pip takes a quarter of an hour: that of the host does it at once.
    """
    project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]
    others = {re.split(r"\W", each.replace("-", "_"))[0] for each in machine.packages}
    locked = re.findall(
        r"^([\w.-]+)(?:\[.*\])?==(\S+)", (clone / "requirements.lock").read_text(), re.MULTILINE
    )
    kept = [f"{name}=={version}" for name, version in locked if name.replace("-", "_") not in others]
    (clone / "kept.txt").write_text("\n".join(kept))
    needed = [*project["dependencies"], *project["optional-dependencies"]["tables"]]
    wanted = shlex.join([*needed, "scipy", "threadpoolctl", "pytest", *machine.packages])
    install = f"-m pip install --quiet --no-compile --only-binary :all: --constraint kept.txt {wanted}"
    if machine.architecture != EMULATED:
        return f"{python} -m venv core\ncore/bin/python {install}\n{_probe('core/bin/python')}"
    command = f"{sys.executable} {install} --target wheels {WHEELS}"
    run(("sh", "-exc", command), log, say, folder=clone, lasts=1200)
    return _probe(python)


def differences(core: Mapping[str, Mapping[str, str]]) -> str:
    """Return the streams that are not as recorded, in words."""
    recorded = json.loads(FILE.read_text())["core"]
    apart = {
        name: [each for each in recorded[name] if core[name].get(each) != recorded[name][each]]
        for name in core
    }
    streams = sorted(set(chain.from_iterable(apart.values())))
    if not streams:
        return ""
    return f"differ in {sum(map(bool, apart.values()))} of {len(apart)} replays: {', '.join(streams)}"


def summary(log: str) -> tuple[str, bool]:
    """Return the last line of pytest in words, and whether all is well."""
    lines = re.findall(r"^=+ (.*(?:passed|failed|error).*) in [\d.]+s.* =+$", log, re.MULTILINE)
    if not lines:
        raise FailedError("pytest did not come to its end")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", log, re.MULTILINE)
    return lines[-1], not failed and "failed" not in lines[-1] and "error" not in lines[-1]


def with_rows(page: str, results: Sequence[Mapping[str, Any]]) -> str:
    """Return a page whose table has new rows in place of those of the same machines."""
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    rows = {row.split("|")[1].strip(): row for row in table.splitlines()[2:]}
    for result in results:
        libraries = (result["libraries"].get(name, "") for name in LIBRARIES)
        rows[result["machine"]] = (
            f"| {' | '.join((result['machine'], *libraries, result['digests'], result['tests']))} |"
        )
    ordered = [rows[machine.text] for machine in MACHINES if machine.text in rows]
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|", *ordered]
    return before + BEGIN + "\n".join(lines) + "\n" + END + after


if __name__ == "__main__":
    sys.exit(main())
