"""The run itself, from the first message to the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from tests.chaos.broker import Broker
from tests.chaos.brokers import Brokers
from tests.chaos.challengers import SETTINGS as CHALLENGERS
from tests.chaos.checker import check, compare, count
from tests.chaos.deployment import Deployment
from tests.chaos.formats import AvroMessages, registry_in
from tests.chaos.formats import settings as avro_settings
from tests.chaos.formats import topics as avro_topics
from tests.chaos.killer import FaultInjector
from tests.chaos.policies import SETTINGS as POLICY
from tests.chaos.policies import policy
from tests.chaos.report import Options, Report
from tests.chaos.schedule import plan, session_timeout
from tests.chaos.world import EARLY, MINUTE, WINDOW, World, as_json, recent_begin
from tests.integration.harness import Pipeline
from tests.support.apicurio import Apicurio
from tests.support.forked import run_command

SETTINGS = {
    "FORKS_JOIN__WINDOW": f"{WINDOW // MINUTE}m",
    "FORKS_JOIN__EARLY": f"{EARLY // MINUTE}m",
    "FORKS_JOIN__EARLY_BYTES": "768000",
    "FORKS_JOIN__MAX_IDLE": "1s",  # stream time passes quickly here: see docs/operations.md on replays
    "FORKS_CHECKPOINT__OUTCOMES": "2000",
    "FORKS_CHECKPOINT__INTERVAL": "5s",
}
ALIGNED = {"FORKS_SHARING__ALIGN": "10m"}
"""Without it, what a replay writes depends on when partitions hear of one another."""
SPILLED = {"FORKS_JOIN__MAX_IN_MEMORY": "200"}
"""Most predictions wait in the file, but those of the undisturbed run."""
SMALL = {"FORKS_WORKER__BATCH": "50"}
"""Small transactions, so that much is left to strike at; how messages fall into them must not show."""


def run(options: Options, folder: Path, say: Callable[[str], None]) -> Report:
    """Run a pipeline on a broker of its own under the schedule of the seed, and check what it wrote.

    Parameters
    ----------
    options
        What it is like.
    folder
        For the broker's data and the workers' logs.
    say
        Told what happens.
    """
    with registry_in(folder) if options.avro else nullcontext() as registry:
        return _run(options, folder, say, registry)


def _run(options: Options, folder: Path, say: Callable[[str], None], registry: Apicurio | None) -> Report:
    begin = time.monotonic()
    minutes = options.minutes
    world = World(
        options.seed,
        options.events,
        options.partitions,
        minutes,
        recent_begin(minutes),
        corrections=options.corrections != "off",
        tables=options.tables,
        together=options.together,
        write=as_json if registry is None else AvroMessages(registry.url),
    )
    injections = plan(
        options.seed, options.minutes, options.workers, options.cluster, registry=registry is not None
    )
    extras = (CHALLENGERS if options.challengers else {}) | (POLICY if options.policy else {})
    extras |= ALIGNED if options.replay else {}
    extras |= {} if options.corrections == "off" else {"FORKS_JOIN__CORRECTIONS": options.corrections}
    extras |= {} if registry is None else avro_settings(registry.url)
    extras["FORKS_WORKER__SESSION_TIMEOUT"] = f"{session_timeout(options.cluster):.0f}s"
    with Brokers(options.workers) if options.cluster else Broker(folder / "broker") as broker:
        if options.replay:
            say("the undisturbed run")
            calm = _undisturbed(broker, world, folder, extras)
        extras |= SPILLED | (SMALL if options.replay else {})
        pipeline = _pipeline(broker, world, "chaos-", folder, extras)
        seconds = 0.0 if options.replay else 60.0 * options.minutes
        with Deployment(pipeline, world, options.workers, seconds, broker.bootstrap_of) as deployment:
            strike = broker.faults(pipeline, deployment) if isinstance(broker, Brokers) else None
            killer = FaultInjector(broker, deployment, injections, say, strike, registry=registry)
            try:
                while not (deployment.finished() and killer.done):
                    deployment.poll()
                    killer.step()
                deployment.worker_pool.stop()
            except TimeoutError as error:
                deployment.worker_pool.problems.append(str(error))
        if isinstance(broker, Brokers):
            broker.cluster.wait_until(broker.cluster.in_sync, "all replicas to be in sync")
        if registry is not None:
            registry.wait_until_ready() if registry.running else registry.start()
        say("checking")
        if options.together:
            found = count(pipeline)
        else:
            found = check(
                pipeline,
                world,
                replayed=options.replay,
                challenged=options.challengers,
                policy=policy() if options.policy else None,
                corrections=options.corrections,
            )
        problems = deployment.worker_pool.problems + found.problems + _audit(pipeline)
        if options.replay:
            problems += compare(pipeline, calm)
        if problems and isinstance(broker, Broker) and broker.running:
            broker.kill()  # its data then stays, to be looked at
    return Report(
        options=options,
        seconds=time.monotonic() - begin,
        faults=killer.struck,
        rebalances=deployment.worker_pool.rebalances(),
        recoveries=deployment.watch.recoveries,
        exits=deployment.worker_pool.exits,
        discarded_sessions=deployment.worker_pool.sessions_thrown_away(),
        found=found,
        problems=problems,
    )


def _pipeline(
    broker: Broker | Brokers, world: World, prefix: str, folder: Path, settings: dict[str, str]
) -> Pipeline:
    logs = folder / prefix
    logs.mkdir()
    copies = broker.replication
    if world.definition is not None:
        (logs / "plays.toml").write_text(world.definition)
        (logs / "forks.toml").write_text('stream = "plays.toml"')
    url = settings.get("FORKS_REGISTRY__URL")
    topics = Topics(prefix, stream=world.stream) if url is None else avro_topics(prefix, url)
    pipeline = Pipeline(broker.bootstrap, prefix, logs, world.partitions, replication=copies, topics=topics)
    pipeline.environment = SETTINGS | settings
    requests_labels = replace(pipeline.topics, requests_labels=True)
    create(Admin(Kafka(bootstrap=broker.bootstrap)), requests_labels, world.partitions, copies)
    return pipeline


def _audit(pipeline: Pipeline) -> list[str]:
    """What `forks audit` has to say against it."""
    kafka = pipeline.kafka
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    done = run_command("audit", *where, environment=pipeline.environment, folder=pipeline.folder)
    output = " | ".join((done.stdout + done.stderr).splitlines()[-10:])
    return [f"forks audit ended with {done.returncode}: {output}"] if done.returncode else []


def _undisturbed(broker: Broker | Brokers, world: World, folder: Path, settings: dict[str, str]) -> Pipeline:
    """The same inputs, and one worker that nothing happens to."""
    pipeline = _pipeline(broker, world, "calm-", folder, settings)
    with Deployment(pipeline, world, 1, 0.0, broker.bootstrap_of) as deployment:
        while not deployment.finished():
            deployment.poll()
        deployment.worker_pool.stop()
    if deployment.worker_pool.problems or deployment.worker_pool.exits:
        raise RuntimeError(f"something happened to the undisturbed run: {deployment.worker_pool.problems}")
    return pipeline
