from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.partitions import Plays, Sharing, play
from pipeline.config.settings import Learner
from pipeline.kafka.partitioner import partition
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model


def test_one_partition_is_the_model_itself(folder: Path) -> None:
    plays = Plays.read(folder)
    model = Model(learner_settings(Learner(), plays.tables.columns), plays.tables, 10)
    expected = np.empty(12)
    features = {}
    for step in plays.order.tolist():
        event = plays.interactions[step % 12]
        if step < 12:
            features[step], expected[step], *_ = model.predict(event)
        else:
            ratio = plays.watch_ratios[step - 12]
            model.learn_example(event, features[step - 12], ratio)
    np.testing.assert_array_equal(play(plays, 1, Sharing.NOTHING).scores, expected)


@pytest.mark.parametrize("sharing", [Sharing.COUNTS, Sharing.ALL])
def test_what_is_shared_is_known_to_others_only_after_an_interval(folder: Path, sharing: Sharing) -> None:
    plays = Plays.read(folder)
    assert len({partition(str(each.user_id).encode(), 8) for each in plays.interactions}) > 1
    alone, late, at_once = (
        play(plays, 8, how, interval).scores
        for how, interval in ((Sharing.NOTHING, 1), (sharing, 12), (sharing, 1))
    )
    np.testing.assert_array_equal(late, alone)
    assert not np.array_equal(at_once, alone)
    first_published = 4  # the first label is published between the third and the fourth event
    np.testing.assert_array_equal(at_once[:first_published], alone[:first_published])
