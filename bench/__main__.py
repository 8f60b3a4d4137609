"""Run a benchmark by its name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import msgspec
from threadpoolctl import threadpool_limits

from bench.options import Options

BENCHMARKS: Mapping[str, str] = MappingProxyType(
    {
        "decode": "microseconds to decode a message, and to write and read an output, by format",
        "deliveries": "errors where minutes are predicted, on invented deliveries",
        "expiries": "what an event costs where labels never come, are corrected or asked for, and of slates",
        "failover": "seconds from a coordinator's death to the next predictions, on three brokers",
        "follower": "answers of a follower derived again, their age, and what following costs the worker",
        "kuairand": "mistakes on real KuaiRand rows, with each kind of running features",
        "labels": "mistakes with fewer labels, by who decides which to ask for",
        "latency": "milliseconds from a play to its prediction, beside a bare loop, at three rates",
        "learner": "microseconds an event, beside plain NumPy, scikit-learn and River",
        "memory": "bytes of a waiting prediction, and of a worker over ten million events at all limits",
        "monitoring": "events a second of a worker with metrics, beside one without",
        "partitions": "what it costs that partitions learn apart, and what sharing brings back",
        "peers": "events a second of a worker, beside the same job in Quix Streams and Kafka Streams",
        "profile": "microseconds an event by stage of a worker",
        "quality": "mistakes of FORKS and its rivals on real KuaiRec rows",
        "recovery": "seconds to restore a partition, and from SIGKILL to the next prediction",
        "scaling": "events a second by partitions and workers, and what a million of them take",
        "serve": "milliseconds to score 200 candidates over HTTP, beside an echo, River and scikit-learn",
        "serve_sizes": "memory of a follower by the number of entities",
        "startup": "seconds until forks --help and completion answer, beside python -c pass",
        "streams": "errors on files of other trades, beside Vowpal Wabbit and River",
        "throughput": "events a second of a worker, beside a bare loop over Kafka and JSON",
        "waiting": "memory and restart with ten million predictions that wait for their label",
    }
)
"""Modules here, each with `run(options)`, which returns an object that JSON can hold."""


def _options() -> tuple[str, Options]:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:12} {text}" for name, text in BENCHMARKS.items()),
    )
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("name", choices=BENCHMARKS, help="which benchmark")
    parser.add_argument("--runs", type=_positive, help="repetitions or permutations")
    parser.add_argument("--events", type=_positive, help="how many, where they go through Kafka")
    parser.add_argument("--warm-up", type=_positive, help="events before these that warm up Java")
    parser.add_argument("--json", action="store_true", help="no progress, only the result")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("FORKS_TEST_DATA", beside)),
        help="folder with kuairec/, kuairand/ and files/ (default: FORKS_TEST_DATA or ../shared/data)",
    )
    given = parser.parse_args()
    return given.name, Options(given.runs, given.data, given.json, given.events, given.warm_up)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def main() -> None:
    """Run what the command line names, on one BLAS thread as in production."""
    name, options = _options()
    benchmark = import_module(f"bench.{name}")
    with threadpool_limits(limits=1):  # of the libraries that are loaded by now
        result = benchmark.run(options)
    print(msgspec.json.encode({"benchmark": name, **result}).decode())


if __name__ == "__main__":
    main()
