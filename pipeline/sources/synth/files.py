"""Write invented data into files: those of KuaiRec, or a table with its stream's definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

import polars as pl

from pipeline.errors import ConfigError
from pipeline.sources.synth.deliveries import draw_deliveries
from pipeline.sources.synth.own_files import OwnFiles
from pipeline.sources.synth.plays import draw_plays
from pipeline.sources.synth.size import InventedStream, Size
from pipeline.sources.synth.user_table import draw_user_features
from pipeline.sources.synth.video_tables import draw_daily_features, draw_tags
from pipeline.sources.synth.world import World

KUAIREC_FILES: Final[Mapping[str, Callable[[World], pl.DataFrame]]] = MappingProxyType(
    {
        "user_features.csv": draw_user_features,
        "item_categories.csv": draw_tags,
        "item_daily_features.csv": draw_daily_features,
        "small_matrix.csv": draw_plays,
    }
)
"""Names of KuaiRec's files, and the functions that draw their rows."""
DELIVERIES: Final = "deliveries.jsonl"
"""The file of invented deliveries; the definition of their stream is beside it."""
DEFINITION: Final = "deliveries.toml"
FILES: Final[Mapping[InventedStream, tuple[str, ...]]] = MappingProxyType(
    {"kuairec": (*KUAIREC_FILES,), "deliveries": (DELIVERIES, DEFINITION)}
)
"""The files of each stream."""


def write_files(
    out: Path,
    size: Size,
    *,
    stream: InventedStream = "kuairec",
    force: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, int]:
    """Invent the data of one seed and write its files; the same seed and size give the same bytes.

    Parameters
    ----------
    out
        The folder to write to; it is created if it does not exist.
    size
        How much data to invent, and the seed.
    stream
        What to invent.
    force
        Replace files that are there, if they are as this function wrote them.
    progress
        Called with the name of each file before it is drawn.

    Returns
    -------
    dict
        Rows of each table, by name.

    Raises
    ------
    ConfigError
        A file is there and `force` is not given, or it is another's, or the folder cannot be written to.
    """
    own = OwnFiles(out)
    present = own.present(FILES[stream])
    if present and not force:
        raise ConfigError(
            f"{out} already has {', '.join(present)}; give another --out, or --force to replace them"
        )
    try:
        if foreign := own.foreign(present):
            raise ConfigError(
                f"{out} has {', '.join(foreign)}, which forks synth did not write, or which was changed "
                "since: --force does not replace it; move it away, or give another --out"
            )
        rows = {}
        for name, table in _tables(stream, size, progress):
            own.write(name, partial(_write, table))
            rows[name] = table.height
        if stream == "deliveries":
            text = files("pipeline.config").joinpath(f"streams/{DEFINITION}").read_bytes()
            own.write(DEFINITION, lambda path: path.write_bytes(text))
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be written to: {error.strerror or error}; give another --out"
        ) from error
    return rows


def is_to_be_kept(out: Path, stream: InventedStream) -> bool:
    """Return whether a folder has all files of a stream, or one that `write_files` did not write.

    Otherwise it has none, or what a run wrote that was ended before it was done.

    Parameters
    ----------
    out
        The folder.
    stream
        What would be invented.

    Raises
    ------
    ConfigError
        The folder cannot be read.
    """
    own = OwnFiles(out)
    try:
        return len(own.present(FILES[stream])) == len(FILES[stream]) or bool(own.foreign(FILES[stream]))
    except OSError as error:
        raise ConfigError(f"{out} cannot be read: {error.strerror or error}") from error


def _tables(
    stream: InventedStream, size: Size, progress: Callable[[str], None]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables with the names of their files."""
    if stream == "deliveries":
        progress(DELIVERIES)
        yield DELIVERIES, draw_deliveries(size)
        return
    world = World(size)
    for name, draw in KUAIREC_FILES.items():
        progress(name)
        yield name, draw(world)


def _write(table: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".jsonl":
        table.write_ndjson(path)
    else:
        table.write_csv(path)
