"""Compile all that a worker calls, before the first message comes.

The image of the containers runs `python -m pipeline.worker.warm_up` once. It also imports what a worker and a
follower import, so that the byte code is there, too.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from pipeline.config.tree import Config
from pipeline.join.warm_up import warm_up as warm_up_join
from pipeline.kafka import batch_producer
from pipeline.model.factory import ModelFactory
from pipeline.model.score_terms import warm_up_explaining
from pipeline.monitoring.drift import DriftDetector
from pipeline.records.decimals import encode_rows
from pipeline.vectorized.batches import closing, matching, merging
from pipeline.vectorized.columns import column_encoder, decoding, outcomes, waiting_texts


def warm_up(factory: ModelFactory) -> None:
    """Compile what a worker calls. This is quick where it was done before.

    Parameters
    ----------
    factory
        Makes the worker's models.
    """
    warm_up_join()
    closing.warm_up()
    matching.warm_up()
    merging.warm_up()
    encode_rows(np.zeros((1, 1)))
    decoding.warm_up()
    column_encoder.warm_up()
    waiting_texts.warm_up()
    outcomes.warm_up()
    batch_producer.warm_up()
    factory.warm_up()
    DriftDetector().add(np.zeros(1))
    warm_up_explaining(factory.new_model())


if __name__ == "__main__":
    import_module("pipeline.worker.worker")
    import_module("pipeline.serving.service")
    warm_up(ModelFactory(Config()))
