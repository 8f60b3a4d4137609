"""The containers against the code, without an engine: `ops/try-compose` has one."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import tomllib
from fnmatch import fnmatch
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from typer.core import TyperGroup
from typer.main import get_command

import pipeline.worker.warm_up
import pipeline.worker.worker
from ops.monitoring.alerts import ALERTS
from pipeline import errors
from pipeline.broker.settings import VERSION, container_environment
from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.settings import Join, Kafka, Serve
from pipeline.config.stream import KUAIREC
from pipeline.errors import BrokerError, ForksError, StorageError
from pipeline.serving.scoring_requests import RequestDecoder
from pipeline.tools.demo import STOP_TIMEOUT

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KAFKA = SERVICES["kafka"]
IMAGE = SERVICES["worker"]["image"]
TABLES = SERVICES["replay"]["image"]
OURS = [name for name, service in SERVICES.items() if service["image"] in (IMAGE, TABLES)]
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


def installs() -> list[str]:
    return [run for run in instructions("RUN") if re.search(r"pip (\S+ \S+ )?install", run)]


def required(package: str) -> list[Requirement]:
    """What a package needs always, without its extras."""
    found = [Requirement(text) for text in requires(package) or []]
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": ""})]


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
        assert str(loaded[section][key]) == value


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
    assert conditions("serve") == {"topics": COMPLETED}
    assert conditions("grafana") == {"prometheus": "service_healthy"}
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
    for service in ("synth", "replay"):  # the same, which FORKS_DATA may name
        assert SERVICES[service]["volumes"][0] == f"${{FORKS_DATA:-data}}:{out}"
    assert "data" in COMPOSE["volumes"]


def test_any_number_of_workers_can_start_and_each_has_time_to_stop() -> None:
    worker = SERVICES["worker"]
    assert "--instance" not in worker["command"]
    assert not any("INSTANCE" in name for name in worker["environment"])
    assert SERVICES["topics"]["command"][-2:] == ["--partitions", "4"]
    assert seconds(worker["stop_grace_period"]) >= STOP_TIMEOUT


def test_one_service_builds_each_image() -> None:
    builds = {service["image"]: service["build"] for service in SERVICES.values() if "build" in service}
    file = {"context": ".", "dockerfile": "ops/Dockerfile"}
    assert builds == {IMAGE: file | {"target": "worker"}, TABLES: file | {"target": "tables"}}
    assert set(SERVICES) - set(OURS) == {"kafka", "prometheus", "grafana"}
    assert {SERVICES[name]["pull_policy"] for name in OURS} == {"never"}
    assert instructions("FROM")[-1] == "worker"  # what is built without a target


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
    for install in installs():  # from what was downloaded, and nothing else
        assert "--no-index" in install
        assert "--find-links wheels" in install


def test_the_images_have_what_their_commands_need_and_no_more() -> None:
    tables, core = installs()
    assert core.split("--find-links wheels ")[1].split()[0] == "forks-stream"
    added, *_ = tables.partition(" --target /opt/tables ")[2].partition("&&")
    names = set(added.split())
    assert {"polars"}.union(*({each.name for each in required(name)} for name in names)) == names
    commands = {service: SERVICES[service]["command"][0] for service in OURS}
    assert {commands[service] for service in OURS if SERVICES[service]["image"] == TABLES} == {
        "synth",
        "replay",
    }
    assert {commands[service] for service in OURS if SERVICES[service]["image"] == IMAGE} == {
        "topics",
        "run",
        "serve",
    }


def test_the_image_has_no_tests_and_no_installer() -> None:
    text = " ".join(instructions("RUN"))
    assert "-m venv --without-pip /opt/forks" in text
    assert "-type d -name tests -prune -exec rm -r {} +" in text
    assert "compileall" not in text


def test_what_was_compiled_is_found_again_from_an_image() -> None:
    """Layers have the times of files in whole seconds, and byte code and compiled code go by them."""
    [compiled] = [run for run in instructions("RUN") if "warm_up" in run]
    assert compiled.index('touch --no-dereference --date="@$(date +%s)"') < compiled.index("warm_up")


def test_versions_of_images_are_exact() -> None:
    bases = [base.split()[0] for base in instructions("FROM")]
    stages = [base.split()[2] for base in instructions("FROM") if " AS " in base]
    images = [base for base in bases if base not in stages]
    images += [service["image"] for service in SERVICES.values() if "build" not in service]
    for image in set(images) - {IMAGE, TABLES}:
        assert re.search(r":v?\d+\.\d+\.\d+", image), image


def test_the_image_runs_forks_on_a_python_that_will_do_and_not_as_root() -> None:
    [base, *_] = instructions("FROM")  # all stages begin with it: the environment is copied
    found = re.match(r"python:(\d+)\.(\d+)\.\d+-slim", base)
    assert found
    assert f"/opt/forks/lib/python{found[1]}.{found[2]}/site-packages" in " ".join(instructions("COPY"))
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert SpecifierSet(needed).contains(".".join(found.groups()))
    assert instructions("USER") == ["forks"]
    assert instructions("ENTRYPOINT") == ['["forks"]']


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # by runpy
def test_the_image_warms_the_cache_that_it_runs_with(
    capfd: pytest.CaptureFixture[str],
) -> None:
    environment = " ".join(instructions("ENV"))
    variables = dict(word.split("=", 1) for word in shlex.split(environment))
    cache = variables["NUMBA_CACHE_DIR"]
    [copied_cache] = [copy for copy in instructions("COPY") if cache in copy]
    assert copied_cache == f"--from=build --chown=forks:forks {cache} {cache}"
    # What a worker calls at its start, so that neither compiles what the other does not.
    assert instructions("RUN")[-3].endswith("&& /opt/forks/bin/python -m pipeline.worker.warm_up")
    assert vars(pipeline.worker.worker)["warm_up"] is pipeline.worker.warm_up.warm_up
    runpy.run_module("pipeline.worker.warm_up", run_name="__main__")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("service", ["worker", "serve"])
def test_nothing_is_restarted_for_errors_that_a_restart_does_not_cure(service: str) -> None:
    entry = SERVICES[service]["entrypoint"]
    codes = {int(entry[place + 1]) for place, word in enumerate(entry) if word == "-e"}
    cured = {ForksError, BrokerError, StorageError}  # by a broker that is back, or by room on the disk
    kinds = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ForksError)
    }
    assert codes == {kind.exit_code for kind in kinds} - {kind.exit_code for kind in cured}
    assert SERVICES[service]["restart"] == "on-failure"
    assert SERVICES[service]["init"] is False  # the entry is one


def test_nothing_grows_without_bound_and_no_volume_lacks_a_name() -> None:
    used = set()
    for service in SERVICES.values():
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert service["mem_limit"]
        assert service["cpus"]
        assert service["pids_limit"]
        for mount in service.get("volumes", []):
            used.add(mount.replace("${FORKS_DATA:-data}", "data").split(":")[0])
    assert {name for name in used if not name.startswith("./")} == COMPOSE["volumes"].keys()
    options = dict(word.removeprefix("--").split("=") for word in SERVICES["prometheus"]["command"])
    assert options["storage.tsdb.retention.size"]
    assert options["storage.tsdb.path"] == SERVICES["prometheus"]["volumes"][0].split(":")[1]


def test_containers_can_do_little() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("read_only") or name == "kafka"  # which writes its settings
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")
    [prepare] = [run for run in instructions("RUN") if "useradd" in run]
    for name in OURS:
        folders = {mount.rsplit(":", 1)[1] for mount in SERVICES[name]["volumes"]} - {"/var/cache/numba"}
        assert folders <= set(shlex.split(prepare))  # so that a new volume belongs to the user


def test_what_waits_on_disk_is_on_a_disk() -> None:
    worker = SERVICES["worker"]
    folders = [mount.split(":")[1] for mount in worker["volumes"]]
    assert worker["environment"]["FORKS_JOIN__SPILL_FOLDER"] in folders
    assert not any(folder in worker["tmpfs"] for folder in folders)


def test_services_that_go_on_have_a_health_check() -> None:
    assert {name for name, service in SERVICES.items() if "healthcheck" in service} == {
        name for name, service in SERVICES.items() if "restart" in service
    }


def test_there_is_no_secret() -> None:
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert not re.search("PASSWORD|SECRET|TOKEN|KEY(?!_)|CREDENTIAL", variable), (name, variable)
    assert "secrets" not in COMPOSE


def test_grafana_shows_its_dashboards_to_everybody_and_lets_nobody_in() -> None:
    grafana = SERVICES["grafana"]
    environment, mounts = grafana["environment"], dict(mount.split(":")[:2] for mount in grafana["volumes"])
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    folder = mounts["./ops/grafana/dashboards"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.parent == Path(folder)
    assert (ROOT / "ops/grafana/dashboards" / home.name).exists()
    provisioning = ROOT / "ops/grafana/provisioning"
    assert mounts["./ops/grafana/provisioning"] == "/etc/grafana/provisioning"
    [provider] = yaml.safe_load((provisioning / "dashboards/forks.yml").read_text())["providers"]
    assert provider["options"]["path"] == folder
    [source] = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    port = SERVICES["prometheus"]["ports"][0].rsplit(":", 1)[1]
    assert (source["type"], source["url"]) == ("prometheus", f"http://prometheus:{port}")
    assert source["isDefault"]  # the dashboards take the default


@pytest.mark.parametrize(
    ("service", "job", "variable"),
    [("worker", "forks", "FORKS_METRICS__ADDRESS"), ("serve", "forks-serve", "FORKS_SERVE__ADDRESS")],
)
def test_prometheus_and_the_health_check_ask_where_a_program_answers(
    service: str, job: str, variable: str
) -> None:
    host, _, port = SERVICES[service]["environment"][variable].rpartition(":")
    assert host == "0.0.0.0"
    scrapes = yaml.safe_load((ROOT / "ops" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    [scrape] = [each for each in scrapes if each["job_name"] == job]
    [found] = scrape["dns_sd_configs"]
    assert (found["names"], found["port"]) == ([service], int(port))
    assert f"http://127.0.0.1:{port}/readyz" in SERVICES[service]["healthcheck"]["test"][-1]
    assert any(f'job="{job}"' in alert.expression for alert in ALERTS)


def test_each_follower_has_a_port_and_time_to_answer_what_is_under_way() -> None:
    serve = SERVICES["serve"]
    [published] = serve["ports"]
    found = re.fullmatch(r"127\.0\.0\.1:\$\{FORKS_SERVE_PORTS:-(\d+)\}:(\d+)", published)
    assert found
    port = found[2]
    assert found[1] == port
    assert re.search(rf"FORKS_SERVE_PORTS={port}-\d+ docker compose up .*--scale serve=2", TEXT)
    assert serve["environment"]["FORKS_SERVE__ADDRESS"].endswith(f":{port}")
    # A request has `serve.timeout` to arrive, and its answer as long again: see `server_limits`.
    assert seconds(serve["stop_grace_period"]) > 2 * Serve().timeout / 1000 + 1
    line = re.search(r"^#   curl 127\.0\.0\.1:(\d+)/v1/score --json '(.*)'$", TEXT, re.MULTILINE)
    assert line
    assert line[1] == port
    assert RequestDecoder(KUAIREC, Serve(), Join()).decode(line[2].encode()).candidates


def test_the_example_of_a_password_has_it_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "docs/operations.md").read_text().partition("\n## Containers\n")[2]
    example, values = re.findall(r"```yaml\n(.*?)```|`(\{.*?\})`", text, re.DOTALL)
    override = yaml.safe_load(example[0])
    [secret] = override["services"]["worker"]["secrets"]
    environment = override["services"]["worker"]["environment"]
    assert environment["FORKS_KAFKA__CLIENT_FILE"] == f"/run/secrets/{secret}"
    assert override["secrets"].keys() == {secret}
    file = tmp_path / secret
    file.write_text(values[1])
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace(f"/run/secrets/{secret}", str(file)))
    kafka = load().kafka
    assert kafka.client["sasl.password"].get_secret_value() == "..."
    assert "..." not in str(kafka)
