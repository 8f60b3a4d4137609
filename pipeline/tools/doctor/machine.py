"""Checks of this machine: Java, packages, compiled code, memory, disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import Final

from forks.compiled.philox import philox
from forks.jit import cache_folder
from pipeline.broker.java import MIN_VERSION, find_java, java_version
from pipeline.config.settings import Config, Join, Worker
from pipeline.errors import ConfigError, StorageError
from pipeline.extras import EXTRA_OF_PACKAGE, install_hint, is_installed
from pipeline.tools.doctor.check import Check, worst
from pipeline.worker.spill_file import refuse_unwritable

SPILLED_BYTES: Final = 600
"""Bytes of the spill file for each prediction that waits in it, at most."""
WAITING_BYTES: Final = 700
"""Bytes of memory for each prediction that waits in memory, about."""
INDEX_BYTES: Final = 80
"""Bytes of memory for each prediction that waits in the file."""
PROGRAM_BYTES: Final = 300_000_000
"""Bytes of memory of a worker without records, about."""


def check_java() -> Check:
    """Check that there is a Java for the embedded broker, which nothing else needs."""
    try:
        java = find_java()
    except ConfigError as error:
        return Check("java", "warning", "only the embedded broker needs Java", str(error))
    version = java_version(java)
    if version < MIN_VERSION:
        return Check("java", "warning", f"{java} does not run", f"install Java {MIN_VERSION} or newer")
    return Check("java", "ok", f"Java {version}: {java}")


def check_extras(config: Config | None) -> Check:
    """Check that the packages are installed that the configuration needs; None for none that is known."""
    missing = [package for package in EXTRA_OF_PACKAGE if not is_installed(package)]
    needed = []
    if config is not None:
        if any((config.features.users, config.features.tags, config.features.daily)):
            needed.append("polars")
        if config.stream.needs_registry:
            needed += ["fastavro", "jsonschema"]
    if lacking := [package for package in needed if package in missing]:
        found = f"the configuration needs {', '.join(lacking)}"
        return Check("extras", "failed", found, install_hint(*lacking))
    if missing:
        extras = sorted({EXTRA_OF_PACKAGE[package] for package in missing})
        return Check("extras", "ok", f"not installed, nor needed by the configuration: {', '.join(extras)}")
    return Check("extras", "ok", "all are installed")


def check_compiled_code() -> Check:
    """Check that compiled code can be kept where it should be: else each start compiles again."""
    remedy = "name a folder that can be written in NUMBA_CACHE_DIR"
    folder = cache_folder(philox)
    if folder is None:
        found = "no folder for it can be written: each start of a worker compiles for 30 to 40 s"
        return Check("compiled code", "warning", found, remedy)
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named and Path(named).absolute() not in folder.absolute().parents:
        return Check("compiled code", "warning", f"{named} cannot be written; {folder} is used", remedy)
    return Check("compiled code", "ok", f"is kept in {folder}")


def check_memory(join: Join, worker: Worker, meminfo: Path = Path("/proc/meminfo")) -> Check:
    """Check that the available memory is enough for one partition with all that may wait in it.

    Parameters
    ----------
    join, worker
        How much each partition and each worker may hold.
    meminfo
        The file in which Linux tells what is available.

    Returns
    -------
    Check
        A warning if it is not; skipped on systems without that file.
    """
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return Check("memory", "skipped", "this system does not tell how much is available")
    in_memory = min(join.max_in_memory, join.max_pending)
    needed = (
        PROGRAM_BYTES
        + worker.buffer
        + WAITING_BYTES * in_memory
        + INDEX_BYTES * (join.max_pending - in_memory)
    )
    found = f"{available:,} bytes are available; one full partition takes about {needed:,}"
    if available < needed:
        remedy = "make room, or lower join.max_in_memory, join.max_pending or worker.buffer"
        return Check("memory", "warning", found, remedy)
    return Check("memory", "ok", found)


def check_disk(join: Join) -> Check:
    """Check that predictions can be spilled, and that the disk has room for those of one partition."""
    folder = join.spill_folder or Path(gettempdir())
    try:
        refuse_unwritable(folder)
    except StorageError as error:
        return Check("disk", "failed", str(error), "make the folder, or name another in join.spill_folder")
    free = shutil.disk_usage(folder).free
    needed = SPILLED_BYTES * max(0, join.max_pending - join.max_in_memory)
    found = f"{folder} has {free:,} bytes free; one full partition takes at most {needed:,}"
    if free >= needed:
        return worst([], "disk", found)
    return Check("disk", "warning", found, "make room, or name another folder in join.spill_folder")
