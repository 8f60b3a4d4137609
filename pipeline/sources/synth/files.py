"""Write the invented data into files with KuaiRec's names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import polars as pl

from pipeline.errors import ConfigError
from pipeline.sources.synth.plays import draw_plays
from pipeline.sources.synth.size import Size
from pipeline.sources.synth.user_table import draw_user_features
from pipeline.sources.synth.video_tables import draw_daily_features, draw_tags
from pipeline.sources.synth.world import World

FILES: Final[dict[str, Callable[[World], pl.DataFrame]]] = {
    "user_features.csv": draw_user_features,
    "item_categories.csv": draw_tags,
    "item_daily_features.csv": draw_daily_features,
    "small_matrix.csv": draw_plays,
}
"""Names of the files, and the functions that draw their rows."""


def write_files(
    out: Path, size: Size, *, force: bool = False, progress: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Invent the data of one seed and write its files; the same seed and size give the same bytes.

    Parameters
    ----------
    out
        The folder to write to; it is created if it does not exist.
    size
        How much data to invent, and the seed.
    force
        Replace files that are there.
    progress
        Called with the name of each file before it is drawn.

    Returns
    -------
    dict
        Rows of each file, by name.

    Raises
    ------
    ConfigError
        A file is there and `force` is not given, or the folder cannot be written to.
    """
    present = [name for name in FILES if (out / name).exists()]
    if present and not force:
        raise ConfigError(
            f"{out} already has {', '.join(present)}; give another --out, or --force to replace them"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        return _write_all(out, World(size), progress)
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be written to: {error.strerror or error}; give another --out"
        ) from error


def _write_all(out: Path, world: World, progress: Callable[[str], None]) -> dict[str, int]:
    rows = {}
    for name, draw in FILES.items():
        progress(name)
        table = draw(world)
        unfinished = out / f"{name}.part"
        table.write_csv(unfinished)
        unfinished.replace(out / name)
        rows[name] = table.height
    return rows
