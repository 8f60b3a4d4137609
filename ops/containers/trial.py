"""What is tried with the containers, one step after the other."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ops.containers.composed import PROMETHEUS, Composed, wait
from ops.containers.engine import Engine
from ops.containers.process import TrialError

LARGEST_IMAGE: Final = 600e6
"""Bytes that the image of the workers may have."""
COMMITS: Final = 0.5
"""Seconds in which a worker commits some of the batches that it has to do, mostly."""
LONGEST_LOAD: Final = 5.0
"""Seconds in which compiled code is loaded, at most; to compile takes longer."""
WORKERS: Final = 2
FOLLOWERS: Final = 2
FOLLOWER: Final = 8080
"""A follower's port, in its container."""
REQUEST: Final = '{"user_id": 7, "items": [{"video_id": 1}, {"video_id": 2}]}'
CANDIDATES: Final = 2


class Trial:
    """The steps, and what they need of one another.

    Parameters
    ----------
    engine
        The engine, with the images that the files name.
    folder
        An empty folder.
    say
        Is told what was found, in a line each.
    """

    def __init__(self, engine: Engine, folder: Path, say: Callable[[str], None]) -> None:
        self._engine = engine
        self._folder = folder
        self._say = say
        self._system = Composed(engine)
        self._events = 0

    def run(self) -> None:
        """Try everything.

        Raises
        ------
        TrialError
            Something is not as it should be.
        """
        try:
            self._steps()
        except TrialError as error:
            logs = self._system.compose("logs", "--tail", "15")
            raise TrialError(f"{error}\nThe ends of the logs:\n{logs}") from error

    def _steps(self) -> None:
        self._start_from_nothing()
        self._kill_a_worker()
        self._look_at_the_logs()
        self._scrape()
        self._audit()
        self._ask_followers()
        self._audit_scores()
        self._kill_the_broker()
        self._down_and_up()
        self._end_for_good()
        self._without_a_cache()
        self._keep_foreign_data()
        self._secret()
        self._clean_up()

    def _start_from_nothing(self) -> None:
        seconds = self._system.up(WORKERS)
        self._say(f"up, with the build of both images, the replay and {WORKERS} workers: {seconds:.0f} s")
        for name in ("forks-stream", "forks-stream-tables"):
            [image] = json.loads(self._engine.docker("image", "inspect", name))
            self._say(f"image {name}: {image['Size'] / 1e6:.0f} MB")
            if name == "forks-stream" and image["Size"] > LARGEST_IMAGE:
                raise TrialError(f"{name} has more than {LARGEST_IMAGE / 1e6:.0f} MB")

    def _kill_a_worker(self) -> None:
        [victim, other] = self._workers()
        wait(lambda: bool(self._events_of(victim, "restored")), "a worker at work", interval=0.05)
        time.sleep(COMMITS)
        self._system.kill_process(victim, "forks run")

        def restarted() -> bool:
            [found] = [each for each in self._workers() if each["Id"] == victim["Id"]]
            return found["RestartCount"] == 1 and self._healthy(found)

        seconds = wait(restarted, "a killed worker that is started again and ready")
        self._say(f"a worker that was killed at work was ready again after {seconds:.0f} s")
        for container in self._workers():
            loaded = [line["seconds"] for line in self._events_of(container, "ready")]
            self._say(f"starts of a worker loaded its compiled code in {loaded} s")
            if max(loaded) > LONGEST_LOAD:
                raise TrialError("that long takes a compilation: the image's compiled code is not used")
        restores = chain.from_iterable(self._events_of(each, "restored") for each in self._workers())
        restored = [line["outcomes"] for line in restores]
        self._say(f"outcomes of partitions when they were restored: {restored}")
        [found] = [each for each in self._workers() if each["Id"] == other["Id"]]
        if found["RestartCount"]:
            raise TrialError("the other worker ended, too")
        self._wait_for_workers()
        report = self._report()
        self._events = report["predictions"]
        sent = sum(report["counters"].get(name, 0) for name in ("predictions",))
        if not self._events or sent != self._events:
            raise TrialError(f"predictions: {self._events} in the topics, {sent} counted")
        self._say(f"{self._events:,} predictions, {report['labelled']:,} of them with their label")

    def _look_at_the_logs(self) -> None:
        lines = sum(len(self._lines(container)) for container in self._workers())
        self._say(f"all {lines} lines of the workers' logs are JSON")
        assigned = [self._events_of(each, "assigned")[-1]["partitions"] for each in self._workers()]
        if sorted(chain.from_iterable(assigned)) != [0, 1, 2, 3] or not all(assigned):
            raise TrialError(f"partitions of the workers: {assigned}")
        self._say(f"partitions of the workers: {assigned}")

    def _scrape(self) -> None:
        def scraped() -> bool:
            up = [self._system.query(f"sum(up{{job='{job}'}})") for job in ("forks", "forks-serve")]
            return up == [[float(WORKERS)], [1.0]]

        wait(scraped, "workers and the follower in Prometheus")
        rules = json.loads(self._system.ask(PROMETHEUS, "/api/v1/rules"))["data"]["groups"]
        firing = self._system.query("count(ALERTS{alertstate='firing'}) or vector(0)")
        count = sum(len(group["rules"]) for group in rules)
        self._say(
            f"Prometheus has scraped both workers and the follower; of {count} alerts, {firing[0]:g} fire"
        )
        if not count:
            raise TrialError("Prometheus has no alerts")

    def _audit(self) -> None:
        self._system.forks("audit")  # ends with 1 if anything differs
        self._say("audit: every prediction was derived again, bit for bit")

    def _ask_followers(self) -> None:
        [first] = self._system.containers("serve")
        self._system.kill_process(first, "forks serve")

        def restarted() -> bool:
            [found] = self._system.containers("serve")
            return found["RestartCount"] == 1 and self._healthy(found)

        seconds = wait(restarted, "a killed follower that is started again and ready")
        json.loads(self._system.ask(FOLLOWER, "/v1/score", REQUEST))
        self._say(f"a follower that was killed was ready again after {seconds:.0f} s")
        self._system.up(WORKERS, FOLLOWERS)

        def ready() -> bool:
            found = self._system.containers("serve")
            return len(found) == FOLLOWERS and all(map(self._healthy, found))

        wait(ready, "followers that are ready")
        answers = []
        for number in range(1, FOLLOWERS + 1):
            port = self._system.port("serve", number, FOLLOWER)
            model = json.loads(self._system.ask(port, "/v1/model"))
            learned = sum(each["model_version"] for each in model["partitions"])
            if learned != self._events:
                raise TrialError(f"the follower at port {port} has learned {learned:,} outcomes")
            answer = json.loads(self._system.ask(port, "/v1/score", REQUEST))
            answers.append([each["score"] for each in answer["items"]])
        if len(answers[0]) != CANDIDATES or any(each != answers[0] for each in answers):
            raise TrialError(f"the followers' scores: {answers}")
        self._say(f"{FOLLOWERS} followers have learned all outcomes, and give the same scores: {answers[0]}")
        self._system.up(WORKERS)

    def _audit_scores(self) -> None:
        name, log = "forks-logged", "/tmp/scores.jsonl"
        serve = ["serve", "--json", "--log-scores", log]
        self._system.compose("run", "--detach", "--name", name, "--no-deps", "serve", *serve)

        def healthy() -> bool:
            return self._healthy(json.loads(self._engine.docker("inspect", name))[0])

        wait(healthy, "a follower that logs scores")
        self._system.ask_within(name, FOLLOWER, "/v1/score", REQUEST)
        # It ends with 1 if anything differs.
        audit = json.loads(self._engine.docker("exec", name, "forks", "audit", "--scores", log, "--json"))
        if audit["scores"]["derived"] != CANDIDATES:
            raise TrialError(f"of {CANDIDATES} logged scores, the audit says: {audit['scores']}")
        begin = time.monotonic()
        self._engine.docker("stop", name)
        [found] = json.loads(self._engine.docker("inspect", name))
        if found["State"]["ExitCode"]:
            raise TrialError(f"a follower that was told to stop ended with {found['State']['ExitCode']}")
        self._engine.docker("rm", name)
        seconds = time.monotonic() - begin
        self._say(
            f"logged scores were derived again, bit for bit; that follower ended within {seconds:.0f} s"
        )

    def _kill_the_broker(self) -> None:
        [kafka] = self._system.containers("kafka")
        self._system.kill_process(kafka, "kafka.Kafka")

        def back() -> bool:
            [found] = self._system.containers("kafka")
            return found["RestartCount"] == 1 and self._healthy(found)

        seconds = wait(back, "a killed broker that is started again")
        self._say(f"a broker that was killed answered again after {seconds:.0f} s")
        self._wait_for_workers()
        self._same_as_before()

    def _down_and_up(self) -> None:
        self._system.compose("down")
        begin = time.monotonic()
        self._system.up(WORKERS)
        self._wait_for_workers()
        self._say(f"down and up: workers are ready after {time.monotonic() - begin:.0f} s")
        self._same_as_before()
        if restarts := [each["RestartCount"] for each in self._workers() if each["RestartCount"]]:
            raise TrialError(f"restarts of workers: {restarts}")

    def _end_for_good(self) -> None:
        words = ["run", "--rm", "--env", "FORKS_JOIN__WINDOW=soon", "worker"]
        self._system.compose(*words)  # ends with 0: restarted for any other code
        self._say("a worker with a wrong setting ends with 0, so that it is not restarted")

    def _without_a_cache(self) -> None:
        program = "import sys, pipeline.worker.worker"
        words = ["--rm", "--read-only", "--user", "4711:4711", "--entrypoint", "sh", "forks-stream", "-c"]
        written = self._engine.docker("run", *words, f"python -c '{program}' 2>&1")
        if written.count("RuntimeWarning: no folder for compiled code") != 1:
            raise TrialError(f"as another user, on a read-only root, python wrote: {written}")
        self._say("another user, a read-only root and no cache: one warning")

    def _keep_foreign_data(self) -> None:
        mine = self._folder / "mine"
        mine.mkdir(mode=0o777)
        (mine / "small_matrix.csv").write_text("mine\n")
        mine.chmod(0o777)
        self._system.compose("run", "--rm", "--no-deps", "synth", FORKS_DATA=str(mine))
        if {path.name: path.read_text() for path in mine.iterdir()} != {"small_matrix.csv": "mine\n"}:
            raise TrialError("synth changed a folder with data that it did not write")
        shutil.rmtree(mine)
        self._say("synth left a folder with other data as it was")

    def _secret(self) -> None:
        secret = self._folder / "kafka-client.json"
        secret.write_text('{"sasl.password": "open sesame"}')
        secret.chmod(0o444)
        override = self._folder / "secret.yml"
        client = {"FORKS_KAFKA__CLIENT_FILE": "/run/secrets/kafka-client"}
        service = {"environment": client, "secrets": ["kafka-client"]}
        secrets = {"kafka-client": {"file": str(secret)}}
        override.write_text(json.dumps({"services": {"topics": service}, "secrets": secrets}))  # JSON is YAML
        files = ["--file", "docker-compose.yml", "--file", str(override)]
        name = "forks-secret"
        shown = self._system.compose(*files, "run", "--name", name, "--no-deps", "topics", "config", "show")
        inspected = self._engine.docker("inspect", name)
        self._engine.docker("rm", name)
        if "sasl.password" not in shown or "open sesame" in shown + inspected:
            raise TrialError(f"a password in a file was not read, or shown: {shown}")
        self._say("a password in a file was read, and docker inspect does not show it")

    def _clean_up(self) -> None:
        volumes = self._engine.docker("volume", "ls", "--quiet").split()
        if others := [name for name in volumes if not name.startswith("forks_")]:
            raise TrialError(f"volumes without names: {others}")
        self._system.compose("down", "--volumes")
        if left := self._engine.docker("volume", "ls", "--quiet").split():
            raise TrialError(f"down --volumes left {left}")
        self._say("every volume had a name, and down --volumes removed them all")

    def _same_as_before(self) -> None:
        if (found := self._report()["predictions"]) != self._events:
            raise TrialError(f"{found:,} predictions where there were {self._events:,}")
        self._audit()

    def _report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._system.forks("report", "--json"))
        return found

    def _workers(self) -> list[dict[str, Any]]:
        return self._system.containers("worker")

    def _lines(self, container: dict[str, Any]) -> list[dict[str, Any]]:
        found = []
        for line in self._system.log(container):
            try:
                found.append(json.loads(line))
            except ValueError as error:
                raise TrialError(f"a line of a worker's log is not JSON: {line}") from error
        return found

    def _events_of(self, container: dict[str, Any], event: str) -> list[dict[str, Any]]:
        return [line for line in self._lines(container) if line["event"] == event]

    @staticmethod
    def _healthy(container: dict[str, Any]) -> bool:
        return bool(container["State"].get("Health", {}).get("Status") == "healthy")

    def _wait_for_workers(self) -> float:
        def ready() -> bool:
            found = self._workers()
            return len(found) == WORKERS and all(map(self._healthy, found))

        return wait(ready, "healthy workers")
