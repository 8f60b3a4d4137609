from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.errors import BrokerError, DataError, StateError, TopicError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import client_settings
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.topics import create
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER
from pipeline.sources.kuairec import read_events
from pipeline.sources.replay import Replay
from pipeline.sources.schedule import Schedule
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from tests.integration.harness import TIMEOUT

PARTITIONS = 3
FORKS = [sys.executable, "-c", "from pipeline.cli import main; main()"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_files(folder, Size(events=3_000, users=40, videos=100, days=2))
    return folder


@pytest.fixture
def kafka(bootstrap: str, topic_prefix: str) -> Kafka:
    kafka = Kafka(bootstrap=bootstrap, prefix=topic_prefix)
    create(Admin(kafka), Topics(topic_prefix), PARTITIONS, 1)
    return kafka


@contextmanager
def reading(kafka: Kafka) -> Iterator[Consumer]:
    """A consumer of all partitions of both input topics, from their beginning."""
    consumer = groupless_consumer(kafka)
    topics = Topics(kafka.prefix).inputs
    consumer.assign([TopicPartition(topic, number, 0) for topic in topics for number in range(PARTITIONS)])
    yield consumer
    consumer.close()


def messages(kafka: Kafka) -> list[list[list[Message]]]:
    """Everything in the input topics, by topic and partition."""
    topics = Topics(kafka.prefix).inputs
    found: list[list[list[Message]]] = [[[] for _ in range(PARTITIONS)] for _ in topics]
    unfinished = PARTITIONS * len(topics)
    with reading(kafka) as consumer:
        while unfinished:
            message = consumer.poll(30)
            assert message is not None, "nothing more comes, but the partitions' ends were not reached"
            if error := message.error():
                assert error.code() == KafkaError._PARTITION_EOF
                unfinished -= 1
            else:
                found[topics.index(str(message.topic()))][int(message.partition() or 0)].append(message)
    return found


def contents(kafka: Kafka) -> list[list[list[str]]]:
    """Event ids by topic and partition."""
    return [
        [[json.loads(message.value() or b"")["event_id"] for message in part] for part in topic]
        for topic in messages(kafka)
    ]


def expected(data: Path) -> list[list[list[str]]]:
    events = read_events(data)
    ids = events.frame["event_id"].to_list()
    parts = Schedule(events, PARTITIONS).records_by_partition()
    return [[[ids[record % len(ids)] for record in part.tolist()] for part in topic] for topic in parts]


def replay(kafka: Kafka, *arguments: str) -> list[str]:
    return [*FORKS, "replay", *arguments, "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block is left."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_records(kafka: Kafka, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until a running replay has brought the topics to so many records."""
    with reading(kafka) as consumer:
        while count > 0:
            count -= sum(message.error() is None for message in consumer.consume(1_000, 0.05))
            assert process.poll() is None, process.communicate()


def test_both_streams_arrive_whole_in_order_at_their_time_and_partition(data: Path, kafka: Kafka) -> None:
    events = read_events(data)
    summary = Replay(events, kafka).run(None, Event())
    assert (summary.interactions, summary.labels) == (len(events), len(events))
    assert summary.complete
    assert contents(kafka) == expected(data)
    rows = {row["event_id"]: row for row in events.frame.iter_rows(named=True)}
    interactions, labels = messages(kafka)
    for parts, decoder, moment in (
        (interactions, INTERACTION_DECODER, "timestamp"),
        (labels, LABEL_DECODER, "label_timestamp"),
    ):
        for message in (message for part in parts for message in part):
            record = decoder.decode(message.value() or b"")
            row = rows[str(record.event_id)]
            assert message.key() == str(record.user_id).encode()
            assert message.timestamp()[1] == record.timestamp == row[moment]
            assert row | msgspec.to_builtins(record) == row | {"timestamp": record.timestamp}


def test_a_replay_that_is_stopped_goes_on_where_it_ended(data: Path, kafka: Kafka) -> None:
    events = read_events(data)
    stop = Event()
    first = Replay(events, kafka).run(None, stop, lambda _: stop.set())
    assert not first.complete
    second = Replay(events, kafka, resume=True).run(None, Event())
    assert second.there_before == first.interactions + first.labels > 0
    assert second.interactions == len(events) - first.interactions
    assert second.complete
    assert contents(kafka) == expected(data)
    third = Replay(events, kafka, resume=True).run(None, Event())
    assert (third.interactions, third.labels, third.complete) == (0, 0, True)


HALTING = """
import signal, sys
from itertools import islice
from pathlib import Path
from threading import Event
from pipeline.config.settings import Kafka
from pipeline.sources.kuairec import read_events
from pipeline.sources.replay import Replay

class Halting(Replay):
    def records(self):
        yield from islice(super().records(), int(most))
        signal.pause()

folder, bootstrap, prefix, most = sys.argv[1:]
Halting(read_events(Path(folder)), Kafka(bootstrap=bootstrap, prefix=prefix), resume=True).run(None, Event())
"""
"""A replay that hands so many records over as fast as it can, but never comes to its end."""


def test_nothing_is_lost_or_doubled_by_kill_9(tmp_path: Path, kafka: Kafka) -> None:
    write_files(tmp_path, Size(events=100_000))
    moments = sorted(random.Random(20200705).sample(range(1_000, 50_000), 3))
    for moment in moments:
        more = str(moment + 5_000)  # than what is waited for, so that some is under way
        halting = [sys.executable, "-c", HALTING, str(tmp_path), kafka.bootstrap, kafka.prefix, more]
        with started(halting) as process:
            wait_for_records(kafka, moment, process)
            process.kill()
            assert process.wait() == -signal.SIGKILL
    done = subprocess.run(replay(kafka, str(tmp_path), "--resume", "--json"), capture_output=True, check=True)
    assert moments[-1] <= json.loads(done.stdout)["there_before"] < 190_000
    assert contents(kafka) == expected(tmp_path)


def test_ctrl_c_ends_in_good_order_and_says_how_to_go_on(data: Path, kafka: Kafka) -> None:
    # Two days at this speed take a minute, so that it is under way for sure when the signal comes.
    with started(replay(kafka, str(data), "--speed", "3000", "--json")) as process:
        wait_for_records(kafka, 5, process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    summary = json.loads(output.splitlines()[-1])
    assert not summary["complete"]
    assert f"continue with: forks replay {data} --speed 3000" in errors
    assert "--resume" in errors
    assert summary["interactions"] + summary["labels"] == sum(
        len(part) for topic in messages(kafka) for part in topic
    )
    assert len(read_events(data)) > summary["interactions"]


@pytest.mark.slow
def test_a_broker_that_goes_away_is_an_error_and_not_a_loss(data: Path, tmp_path: Path) -> None:
    folder = ["--data", str(tmp_path / "broker")]
    start = [*FORKS, "broker", "start", *folder, "--json"]
    running = json.loads(subprocess.run(start, capture_output=True, check=True).stdout)
    try:
        kafka = Kafka(bootstrap=running["bootstrap"])
        create(Admin(kafka), Topics(), PARTITIONS, 1)
        with pytest.raises(
            BrokerError, match=rf"{kafka.bootstrap}: nothing was acknowledged for 1 s .*--resume"
        ):
            Replay(read_events(data), kafka, ack_timeout=1.0).run(
                None, Event(), lambda sent: kill_once(running["pid"], sent)
            )
        subprocess.run([*start, "--port", kafka.bootstrap.split(":")[1]], capture_output=True, check=True)
        Replay(read_events(data), kafka, resume=True).run(None, Event())
        assert contents(kafka) == expected(data)
    finally:
        subprocess.run([*FORKS, "broker", "stop", *folder], capture_output=True, check=True)


def kill_once(pid: int, sent: int) -> None:
    if sent > 3_000:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_record_that_the_broker_refuses_is_an_error(data: Path, bootstrap: str, topic_prefix: str) -> None:
    kafka = Kafka(bootstrap=bootstrap, prefix=topic_prefix)
    topics, client = Topics(topic_prefix), Admin(kafka)
    small = topics.settings(topics.labels) | {"max.message.bytes": "20"}
    client.create_topics([NewTopic(topics.labels, 1, 1, config=small)])[topics.labels].result()
    create(client, topics, 1, 1)
    with pytest.raises(BrokerError, match=r"_GAPLESS_GUARANTEE: .*Message size too large"):
        Replay(read_events(data), kafka).run(None, Event())


def test_another_writer_is_noticed(data: Path, kafka: Kafka) -> None:
    def intrude(_: int) -> None:
        other = Producer(client_settings(kafka))
        other.produce(Topics(kafka.prefix).labels, b"{}", partition=1)
        other.flush(10)

    run = Replay(read_events(data).first(1_500), kafka)
    with pytest.raises(StateError, match=r"watch-labels: .* grew by .*\. Another program writes there too"):
        run.run(None, Event(), intrude)
    with pytest.raises(DataError, match="its last record is no event"):
        Replay(read_events(data).first(1_500), kafka, resume=True)


def test_resuming_another_replay_is_refused(data: Path, kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "overtaken.csv"
    header = "user_id,video_id,play_duration,video_duration,timestamp,watch_ratio"
    file.write_text(f"{header}\n1,1,90000,10000,10,9\n1,2,5000,10000,20,0.5\n")
    events = read_events(file)
    Replay(events.first(1), kafka).run(None, Event())
    with pytest.raises(DataError, match="Resume with the --limit that the replay was started with"):
        Replay(events, kafka, resume=True)
    with pytest.raises(DataError, match="which is not in the file"):
        Replay(read_events(data), kafka, resume=True)


def test_missing_topics_are_named_with_the_remedy(data: Path, bootstrap: str, topic_prefix: str) -> None:
    with pytest.raises(TopicError, match=f"forks topics create --prefix {topic_prefix}"):
        Replay(read_events(data), Kafka(bootstrap=bootstrap, prefix=topic_prefix))


def test_topics_of_different_partition_counts_are_refused(
    data: Path, bootstrap: str, topic_prefix: str
) -> None:
    kafka = Kafka(bootstrap=bootstrap, prefix=topic_prefix)
    new = [NewTopic(topic, count) for count, topic in enumerate(Topics(topic_prefix).inputs, start=1)]
    client = Admin(kafka)
    for future in client.create_topics(new).values():
        future.result()
    with pytest.raises(TopicError, match=r"interactions has 1 partitions and .*watch-labels 2"):
        Replay(read_events(data), kafka)


def test_the_command_sums_up(data: Path, kafka: Kafka) -> None:
    arguments = [
        "replay",
        str(data),
        "--limit",
        "50",
        "--bootstrap",
        kafka.bootstrap,
        "--prefix",
        kafka.prefix,
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "sent           50 interactions and 50 labels of 50 events" in result.stdout
    again = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(again.stdout)["there_before"] == 100
    assert "the topics hold 100 records already" in again.stderr


def test_a_missing_broker_is_reported_with_the_address(data: Path) -> None:
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1"):
        Replay(read_events(data), Kafka(bootstrap="127.0.0.1:1"))
