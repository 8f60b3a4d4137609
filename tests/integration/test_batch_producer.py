"""Records that librdkafka takes from compiled code are those that it takes from its client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.kafka.batch_producer import BatchProducer
from pipeline.records.texts import Texts, key_texts
from tests.integration.harness import TIMEOUT, Pipeline, input_producer

COUNT = 3_000


@pytest.mark.parametrize("ids", [range(COUNT), [f"Zoë {number}" for number in range(COUNT)]])
def test_both_ways_write_the_same(
    ids: list[int | str], bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    topics, timestamps = pipeline.topics, 1_600_000_000_000 + np.arange(COUNT)
    values = [b'{"number":%d}' % number for number in range(COUNT)]
    texts = Texts.of(values)
    producer, keys, written = input_producer(bootstrap), key_texts(Texts.of_ids([*ids], []).column(0)), {}
    for topic, native in ((topics.interactions, False), (topics.labels, True)):
        batches = BatchProducer(producer, native=native)
        reports = [
            batches.produce(topic, 1, texts, keys, timestamps),
            batches.produce(topic, 1, values, keys, timestamps),
            batches.produce(topic, 1, values[:1], keys[:1], timestamps[:1]),
        ]
        assert producer.flush(TIMEOUT) == 0
        assert [report.offset for report in reports] == [0, COUNT, 2 * COUNT]
        written[native] = pipeline.read(topic)
    assert written[True] == written[False]
    assert [each.value for each in written[True]] == [*values, *values, values[0]]
    assert {each.partition for each in written[True]} == {1}
    assert [each.timestamp for each in written[True]][:COUNT] == timestamps.tolist()
