"""The pipeline of this project on a table: without Kafka, as `forks evaluate` runs it, with defaults.

Categories have no columns, so that the learner's sparse part has them. Each label comes a millisecond after
its event, and so before the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import polars as pl

from bench.stream_figures import Run
from bench.stream_tables import NONE, Table
from pipeline.config.settings import Config
from pipeline.config.target_settings import RegressionSettings
from pipeline.errors import DataError
from pipeline.model.factory import ModelFactory
from pipeline.sources.rows import read_rows
from pipeline.tools.evaluate.table_run import batches
from pipeline.tools.report.partition_run import outcome_decoder

LABEL_DELAY: Final = 1
"""Milliseconds."""


def run_own(table: Table, progress: Callable[[int], None]) -> Run:
    """Predict and learn the events of a table.

    Raises
    ------
    DataError
        A row cannot be used.
    """
    config = Config.model_validate({"stream": definition(table)})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        frame_of(table).write_parquet(path)
        events = read_rows(path, config.stream, LABEL_DELAY)
    if len(events) < len(table):
        raise DataError(f"{table.name}: of {len(table):,} rows some cannot be used: {events.reasons}")
    factory, decoder = ModelFactory(config), outcome_decoder(config.stream)
    factory.warm_up()
    numbers = isinstance(table.target, RegressionSettings)
    predicted, done, seconds = np.full(len(table), np.nan), 0, time.perf_counter()
    for batch in batches(events, config, factory):
        for value in batch.records.outcomes.values:
            outcome = decoder.decode(value)
            predicted[outcome.prediction_sequence] = outcome.predicted if numbers else outcome.score
            done += 1
        if batch.dead_letters:
            raise DataError(f"{table.name}: a row cannot be used: {batch.dead_letters[0]}")
        progress(done)
    return Run(predicted, time.perf_counter() - seconds)


def definition(table: Table) -> dict[str, Any]:
    """Return the definition of a table's stream."""
    topics = {
        name: {"topic": name, "event_id": "/event_id", "time": f"/{name}_time"}
        for name in ("interactions", "labels")
    }
    topics["labels"]["value"] = "/label"
    features: dict[str, dict[str, Any]] = {
        name: {
            "kind": "number",
            "field": f"/{name}",
            "missing": 0.0,
            "indicator": bool(np.isnan(values).any()),
            "log": name in table.logarithms,
        }
        for name, values in table.numbers.items()
    }
    features |= {
        name: {"kind": "category", "field": f"/{name}", "missing": NONE} for name in table.categories
    }
    features |= {f"time_{name}": {"kind": name, "utc_offset": table.utc_offset} for name in table.cycles}
    return {
        "name": table.name,
        "entities": {name: f"/{name}" for name in table.entities},
        **topics,
        "target": table.target.model_dump(),
        "features": features,
    }


def frame_of(table: Table) -> pl.DataFrame:
    """Return the rows with the columns that the definition names."""
    numbers = {name: pl.Series(each).fill_nan(None) for name, each in table.numbers.items()}
    return pl.DataFrame(
        {
            "event_id": np.arange(len(table)),
            "interactions_time": table.times,
            "label": table.labels,
            **table.entities,
            **table.categories,
            **numbers,
        }
    )
