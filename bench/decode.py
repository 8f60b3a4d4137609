"""Microseconds a message in each format: inputs to be decoded, outputs to be written and read.

They are of the processor's time, the least of several runs, so that a busy machine changes them little.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from bench.options import Options
from pipeline.config.stream import KUAIREC
from pipeline.records.avro_outputs import AvroRecord
from pipeline.records.encoding import encode, encode_all
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Outcome, Prediction
from pipeline.records.schemas import WriterSchema
from tests.support.schemas import (
    ORDER,
    avro,
    avro_schema,
    decoders,
    framed,
    order_class,
    order_file,
    proto_schema,
)

MESSAGES: Final = 2_000
RUNS: Final = 15
PREFIX: Final = framed(1, b"")
PLAY: Final = b'{"event_id":%d,"user_id":7,"video_id":3,"timestamp":1594000000000,"video_duration":900.0}'


def run(options: Options) -> dict[str, Any]:
    """Measure, on one core."""
    count, runs = options.events or MESSAGES, options.runs or RUNS
    return {"messages": count, "runs": runs, "inputs": _inputs(count, runs), "outputs": _outputs(count, runs)}


def _microseconds(action: Callable[[], object], events: int, runs: int) -> float:
    """Return the least of `runs` that ``action``, on ``events`` events, takes for each of them."""
    action()
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return round(1e6 * min(seconds) / events, 3)


def _each(function: Callable[[Any], object], values: list[Any]) -> None:
    """Call a function with each value."""
    for _ in map(function, values):
        pass


def _inputs(count: int, runs: int) -> dict[str, float]:
    """Return what it takes to make a record of an interaction, by format."""
    chance = random.Random(1)
    orders = [
        {
            "order": f"o{number}",
            "courier": {"nick": None, "id": f"c{chance.randrange(40)}"},
            "from": chance.randrange(25),
            "times": {"at": 1_772_366_400_250 + 60_000 * number},
            "note": None,
        }
        for number in range(count)
    ]
    json = list(map(_as_json, orders))
    json_schema = WriterSchema("JSON", '{"type": "object"}')
    file = order_file()
    formats = {
        "json": (decoders("json"), json),
        "json-schema": (decoders("json-schema", json_schema), [PREFIX + each for each in json]),
        "avro": (decoders("avro", avro_schema(ORDER)), [avro(ORDER, order) for order in orders]),
        "protobuf": (
            decoders("protobuf", proto_schema(file)),
            list(map(partial(_as_protobuf, order_class(file)), orders)),
        ),
        "json, KuaiRec's": (InputDecoders.of(KUAIREC), [PLAY % number for number in range(count)]),
    }
    return {
        name: _microseconds(partial(_each, made.interactions.decode, values), count, runs)
        for name, (made, values) in formats.items()
    }


def _as_json(order: Mapping[str, Any]) -> bytes:
    at = datetime.fromtimestamp(order["times"]["at"] / 1000, UTC)
    return encode({**order, "times": {"at": at.isoformat(timespec="milliseconds")}})


def _as_protobuf(kind: Any, order: Mapping[str, Any]) -> bytes:
    message = kind(order=order["order"])
    message.courier.id = order["courier"]["id"]
    setattr(message, "from", order["from"])
    message.times.at.FromMilliseconds(order["times"]["at"])
    return PREFIX + b"\2\2" + bytes(message.SerializeToString())


def _outputs(count: int, runs: int) -> dict[str, dict[str, float]]:
    """Return what it takes to write and to read predictions and outcomes of KuaiRec's stream."""
    chance = random.Random(1)
    predictions, outcomes = [], []
    prediction: Any = Prediction
    outcome: Any = Outcome
    for number in range(count):
        features = [chance.random() for _ in range(KUAIREC_TYPES.features)]
        first = number, chance.randrange(7_000), chance.randrange(3_000), 1_594_000_000_000 + number
        score = chance.random(), chance.random(), True, features, number
        predictions.append(prediction(*first, *score, number))
        label = number, chance.random(), False, 1_594_000_060_000 + number, False, chance.random()
        outcomes.append(outcome(*first, *score, *label, "labelled", number))
    found = {}
    for name, records, decode in (
        ("predictions", predictions, KUAIREC_TYPES.predictions.decode),
        ("outcomes", outcomes, KUAIREC_TYPES.outcomes.decode),
    ):
        record, texts = AvroRecord(type(records[0]), "forks.kuairec"), encode_all(records)
        values = [PREFIX + record.encode(text) for text in texts]
        to_json = record.decoder(record.schema)
        found[name] = {
            "json, written": _microseconds(partial(encode_all, records), count, runs),
            "avro, written of json": _microseconds(partial(_each, record.encode, texts), count, runs),
            "json, read": _microseconds(partial(_each, decode, texts), count, runs),
            "avro, read to json": _microseconds(partial(_each, to_json, values), count, runs),
            "json, bytes": round(sum(map(len, texts)) / count, 1),
            "avro, bytes": round(sum(map(len, values)) / count, 1),
        }
    return found
