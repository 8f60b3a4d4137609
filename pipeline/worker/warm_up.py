"""Compile all that a worker calls, before the first message comes: `python -m pipeline.worker.warm_up`.

The image of the containers runs this once, so that the code it has is the code that a worker uses.
"""

from __future__ import annotations

import numpy as np

from pipeline.config.tree import Config
from pipeline.join import merge
from pipeline.model.factory import ModelFactory
from pipeline.monitoring.drift import DriftDetector
from pipeline.records.decimals import encode_rows


def warm_up(factory: ModelFactory) -> None:
    """Compile what a worker calls. This is quick where it was done before.

    Parameters
    ----------
    factory
        Makes the worker's models.
    """
    merge.warm_up()
    encode_rows(np.zeros((1, 1)))
    factory.warm_up()
    DriftDetector().add(np.zeros(1))


if __name__ == "__main__":
    warm_up(ModelFactory(Config()))
