"""The containers against the code: no Docker engine is needed, and none has been used."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

import pipeline.worker.warm_up
import pipeline.worker.worker
from pipeline import errors
from pipeline.broker.settings import VERSION, container_environment
from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.tree import Kafka
from pipeline.errors import BrokerError, ForksError, StorageError
from pipeline.tools.demo import STOP_TIMEOUT

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KAFKA = SERVICES["kafka"]
IMAGE = SERVICES["worker"]["image"]
OURS = [name for name, service in SERVICES.items() if service.get("image") == IMAGE]
COMPLETED = "service_completed_successfully"


def instructions(word: str) -> list[str]:
    """What follows a word of the Dockerfile, one string each time, continued lines joined."""
    lines = (ROOT / "ops" / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    return re.findall(rf"^{word} +(.+)$", text, re.MULTILINE)


def copied() -> set[str]:
    """What the Dockerfile copies from the project."""
    copies = [copy.split() for copy in instructions("COPY") if not copy.startswith("--from")]
    return {source for *sources, _ in copies for source in sources}


def conditions(service: str) -> dict[str, str]:
    waits = SERVICES[service].get("depends_on", {})
    return {name: wait["condition"] for name, wait in waits.items()}


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])


def test_the_broker_is_the_one_that_the_code_knows() -> None:
    assert KAFKA["image"] == f"apache/kafka:{VERSION}"
    by_code = container_environment("kafka", 19092)
    own = {
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:19092,HOST://127.0.0.1:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT",
        "KAFKA_LOG_DIRS": "/var/lib/kafka/data",
    }
    assert KAFKA["environment"] == by_code | own


def test_the_broker_has_a_listener_for_containers_and_one_for_the_host() -> None:
    environment = KAFKA["environment"]
    listeners = dict(entry.split("://") for entry in environment["KAFKA_LISTENERS"].split(","))
    advertised = dict(entry.split("://") for entry in environment["KAFKA_ADVERTISED_LISTENERS"].split(","))
    protocols = dict(
        entry.split(":") for entry in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    )
    assert listeners.keys() == protocols.keys() == advertised.keys() | {"CONTROLLER"}
    for name, address in advertised.items():
        assert listeners[name] == f"0.0.0.0:{address.split(':')[1]}"

    for service in OURS:
        assert SERVICES[service]["environment"]["FORKS_KAFKA__BOOTSTRAP"] == advertised["PLAINTEXT"]
    port = advertised["HOST"].split(":")[1]
    assert KAFKA["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert advertised["HOST"] == Kafka().bootstrap  # so that `forks` on the host needs no option


def test_the_broker_keeps_its_data_in_a_named_volume() -> None:
    [mount] = KAFKA["volumes"]
    volume, folder = mount.split(":")
    assert volume in COMPOSE["volumes"]
    assert folder == KAFKA["environment"]["KAFKA_LOG_DIRS"]


def test_the_health_check_asks_the_broker_itself() -> None:
    command, *_ = KAFKA["healthcheck"]["test"]
    advertised = KAFKA["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    address = KAFKA["healthcheck"]["test"][3]
    assert command == "CMD"
    assert f"PLAINTEXT://{address}," in advertised


@pytest.mark.parametrize("service", OURS)
def test_the_configuration_takes_every_variable(
    service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no forks.toml
    for name in [name for name in os.environ if name.startswith("FORKS_")]:
        monkeypatch.delenv(name)
    environment = {n: v for n, v in SERVICES[service]["environment"].items() if n.startswith("FORKS_")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    loaded = load().model_dump()
    for name, value in environment.items():
        section, key = name.removeprefix("FORKS_").lower().split("__")
        assert loaded[section][key] == value


@pytest.mark.parametrize("service", OURS)
def test_forks_takes_every_command_line(service: str) -> None:
    words = list(SERVICES[service]["command"])
    command: Any = get_command(app)
    while isinstance(command, TyperGroup):
        command = command.commands[words.pop(0)]
    # The folder to replay is there only inside the container; it is not looked at before the command runs.
    context = command.make_context(command.name, list(words))
    taken = {name for name in context.params if context.get_parameter_source(name).name == "COMMANDLINE"}
    options = {option.name for option in command.params if set(option.opts) & set(words)}
    values = {str(context.params[name]) for name in taken}
    assert options <= taken
    assert {word for word in words if not word.startswith("--")} <= values


def test_everything_starts_when_what_it_needs_is_there() -> None:
    assert conditions("topics") == {"kafka": "service_healthy"}
    assert conditions("replay") == {"topics": COMPLETED, "synth": COMPLETED}
    assert conditions("worker") == {"replay": COMPLETED}
    assert conditions("kafka") == conditions("synth") == conditions("prometheus") == {}


def test_what_ends_by_itself_is_waited_for_and_what_does_not_is_restarted() -> None:
    awaited = {name for s in SERVICES for name, how in conditions(s).items() if how == COMPLETED}
    restarted = {name for name, service in SERVICES.items() if "restart" in service}
    assert awaited == {"topics", "synth", "replay"}
    assert restarted == SERVICES.keys() - awaited


def test_the_data_are_replayed_from_where_they_were_written() -> None:
    _, _, out, _ = SERVICES["synth"]["command"]
    _, read, _ = SERVICES["replay"]["command"]
    assert out == read
    assert SERVICES["synth"]["volumes"] == [f"data:{out}"]
    assert SERVICES["replay"]["volumes"] == [f"data:{read}:ro"]
    assert "data" in COMPOSE["volumes"]


def test_any_number_of_workers_can_start_and_each_has_time_to_stop() -> None:
    worker = SERVICES["worker"]
    assert "--instance" not in worker["command"]
    assert not any("INSTANCE" in name for name in worker["environment"])
    assert SERVICES["topics"]["command"][-2:] == ["--partitions", "4"]
    assert seconds(worker["stop_grace_period"]) >= STOP_TIMEOUT


def test_one_service_builds_the_image_for_all() -> None:
    builds = [service["build"] for service in SERVICES.values() if "build" in service]
    assert builds == [{"context": ".", "dockerfile": "ops/Dockerfile"}]
    assert set(SERVICES) - set(OURS) == {"kafka", "prometheus"}
    assert {SERVICES[name]["pull_policy"] for name in OURS} == {"never"}


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in ("", "#")]
    for source in copied():
        assert (ROOT / source).exists()
        ignored = False
        for pattern in rules:
            if fnmatch(source, pattern.removeprefix("!")):
                ignored = not pattern.startswith("!")
        assert not ignored


def test_the_image_copies_all_that_the_package_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *wheel["packages"]}
    assert copied() == needed | {"requirements.lock"}


def test_the_image_installs_what_the_lock_names_with_hashes() -> None:
    [download] = [run for run in instructions("RUN") if "pip download" in run]
    assert "--require-hashes" in download
    assert "--requirement requirements.lock" in download
    [install] = [run for run in instructions("RUN") if "pip install" in run]
    assert "--no-index" in install  # from what was downloaded, and nothing else


def test_the_image_has_the_extra_that_its_commands_need_and_no_other() -> None:
    [install] = [run for run in instructions("RUN") if "pip install" in run]
    assert '"forks-stream[tables]"' in install
    assert {SERVICES[service]["command"][0] for service in OURS} == {"topics", "synth", "replay", "run"}


def test_the_image_runs_forks_on_a_python_that_will_do_and_not_as_root() -> None:
    bases = instructions("FROM")
    assert len({base.split()[0] for base in bases}) == 1  # both stages: the environment is copied
    found = re.match(r"python:(\d+)\.(\d+)-slim", bases[-1])
    assert found
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert tuple(map(int, found.groups())) >= tuple(map(int, needed.removeprefix(">=").split(".")))
    assert instructions("USER") == ["forks"]
    assert instructions("ENTRYPOINT") == ['["forks"]']


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # by runpy
def test_the_image_warms_the_cache_that_it_runs_with(
    capfd: pytest.CaptureFixture[str],
) -> None:
    [environment] = instructions("ENV")
    variables = dict(word.split("=", 1) for word in shlex.split(environment))
    [prepare] = [run for run in instructions("RUN") if "useradd" in run]
    assert variables["NUMBA_CACHE_DIR"] in shlex.split(prepare)  # made for the user that owns it
    compiled_as = instructions("RUN")[-1]
    # What a worker calls at its start, so that neither compiles what the other does not.
    assert compiled_as == "python -m pipeline.worker.warm_up"
    assert vars(pipeline.worker.worker)["warm_up"] is pipeline.worker.warm_up.warm_up
    runpy.run_module("pipeline.worker.warm_up", run_name="__main__")
    assert capfd.readouterr().err == ""


def test_a_worker_is_not_restarted_for_errors_that_a_restart_does_not_cure() -> None:
    worker = SERVICES["worker"]
    entry = worker["entrypoint"]
    codes = {int(entry[place + 1]) for place, word in enumerate(entry) if word == "-e"}
    cured = {ForksError, BrokerError, StorageError}  # by a broker that is back, or by room on the disk
    kinds = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ForksError)
    }
    assert codes == {kind.exit_code for kind in kinds} - {kind.exit_code for kind in cured}
    assert worker["restart"] == "on-failure"


def test_nothing_grows_without_bound_and_no_volume_lacks_a_name() -> None:
    for service in SERVICES.values():
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert service["mem_limit"]
    for service in SERVICES.values():
        for mount in service.get("volumes", []):
            assert mount.startswith("./") or mount.split(":")[0] in COMPOSE["volumes"]
    assert SERVICES["worker"]["volumes"] == ["cache:/var/cache/numba"]


def test_prometheus_and_the_health_check_ask_where_the_worker_answers() -> None:
    port = int(SERVICES["worker"]["environment"]["FORKS_METRICS__ADDRESS"].rpartition(":")[2])
    scrapes = yaml.safe_load((ROOT / "ops" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    [found] = scrapes[0]["dns_sd_configs"]
    assert (found["names"], found["port"]) == (["worker"], port)
    assert f"http://127.0.0.1:{port}/readyz" in SERVICES["worker"]["healthcheck"]["test"][-1]
