"""The tree of settings, and what the loader reads and refuses."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.durations import milliseconds
from pipeline.config.loader import load
from pipeline.config.settings import FIXED, Config
from pipeline.errors import ConfigError
from pipeline.kafka.batch_producer import BatchProducer
from pipeline.kafka.registry import TIMEOUT
from pipeline.worker import worker


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep settings of the caller's environment and folder out."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.upper().startswith("FORKS_"):
            monkeypatch.delenv(name)


def write(text: str, name: str = "mine.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def refusal(path: Path | None = None, flags: dict[str, Any] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, flags)
    assert caught.value.exit_code == 2
    return str(caught.value)


def client_of(config: Config) -> dict[str, object]:
    return {name: value.get_secret_value() for name, value in config.kafka.client.items()}


def test_without_anything_there_are_defaults() -> None:
    config = load()
    assert config == Config()
    assert config.kafka.bootstrap == "127.0.0.1:9092"
    assert config.join.window == 6 * 3_600_000


def test_a_configuration_built_in_code_reads_neither_file_nor_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("[worker]\nbatch = 7\n", "forks.toml")
    monkeypatch.setenv("FORKS_KAFKA__PREFIX", "environment.")
    built, loaded = Config(), load()
    assert (built.worker.batch, built.kafka.prefix) == (5_000, "")
    assert (loaded.worker.batch, loaded.kafka.prefix) == (7, "environment.")
    assert type(loaded) is Config
    assert type(loaded)() == built


def test_flags_win_over_environment_over_file_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write('[kafka]\nbootstrap = "file:1"\nprefix = "file."\ngroup = "file"\n')
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP", "environment:1")
    monkeypatch.setenv("FORKS_KAFKA__PREFIX", "environment.")
    kafka = load(path, {"kafka.bootstrap": "flag:1", "kafka.prefix": None, "kafka.group": None}).kafka
    assert kafka.bootstrap == "flag:1"
    assert kafka.prefix == "environment."
    assert kafka.group == "file"
    assert kafka.instance is None


def test_the_file_of_the_working_directory_is_read_unless_another_is_named() -> None:
    write("[worker]\nbatch = 7\n", "forks.toml")
    assert load().worker.batch == 7
    assert load(write("[worker]\nbatch = 8\n")).worker.batch == 8


def test_every_section_can_be_set_in_the_file() -> None:
    config = load(
        write(
            """
            [kafka.client]
            "security.protocol" = "SSL"
            "socket.timeout.ms" = 1000
            [join]
            window = "90s"
            on_missing = "drop"
            idle_advance = "5s"
            [features]
            users = "user_features.csv"
            [learner]
            preset = "paper"
            budget = 30
            [checkpoint]
            interval = "2m"
            [worker]
            session_timeout = "7s"
            """
        )
    )
    assert client_of(config) == {"security.protocol": "SSL", "socket.timeout.ms": 1000}
    assert (config.join.window, config.join.on_missing, config.join.idle_advance) == (90_000, "drop", 5_000)
    assert config.features.users == Path("user_features.csv")
    assert (config.learner.preset, config.learner.overrides) == ("paper", {"budget": 30})
    assert (config.checkpoint.interval, config.worker.session_timeout) == (120_000, 7_000)


def test_the_environment_holds_tables_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_KAFKA__CLIENT", '{"security.protocol": "SSL"}')
    assert client_of(load()) == {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0ms", 0),
        ("500ms", 500),
        ("90s", 90_000),
        ("30 m", 1_800_000),
        (" 6h ", 21_600_000),
        ("7d", 604_800_000),
    ],
)
def test_durations_have_units(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


def test_a_duration_beyond_all_timestamps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_JOIN__WINDOW", f"{2**53 + 1}ms")
    with pytest.raises(ConfigError, match=r"join\.window.*less than or equal to 9007199254740992"):
        load()
    monkeypatch.setenv("FORKS_JOIN__WINDOW", f"{2**53}ms")
    assert load().join.window == 2**53


@pytest.mark.parametrize("value", ["", "5", "-5s", "1.5h", "5 weeks", "s", "5S", "٣s", 5, 5.0, None, True])
def test_anything_else_is_refused_as_a_duration(value: object) -> None:
    with pytest.raises(ValueError, match=r'like "500ms", "90s", "30m", "6h" or "7d"'):
        milliseconds(value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[join]\nwindow = "5 weeks"\n', ["join.window", "a whole number and a unit", "'5 weeks'"]),
        ("[join]\nwindow = 5\n", ["join.window", '"6h"', "got 5"]),
        ('[join]\non_missing = "maybe"\n', ["join.on_missing", "'negative' or 'drop'", "'maybe'"]),
        ("[join]\nearly_bytes = 1000000\n", ["join.early_bytes", "less than or equal to 768000"]),
        ("[worker]\nbatch = 0\n", ["worker.batch", "greater than or equal to 1", "got 0"]),
        ('[worker]\nsession_timeout = "1s"\n', ["worker.session_timeout", "6000"]),
        ("[sharing]\ninterval = 101\n", ["sharing.interval", '"auto", "off", or a number', "1 to 100"]),
        ("[sharing]\ninterval = true\n", ["sharing.interval", "a number of outcomes", "got True"]),
        ('[sharing]\ninterval = "on"\n', ["sharing.interval", "a number of outcomes", "got 'on'"]),
        ('[sharing]\nalign = "30s"\ninterval = "off"\n', ["sharing", "align needs shares"]),
        ('[sharing]\nalign = "0s"\n', ["sharing.align", "greater than or equal to 1"]),
        ('[metrics]\naddress = ":9100"\n', ["metrics.address", '"127.0.0.1:9100"', "':9100'"]),
        ('[metrics]\naddress = "here:65536"\n', ["metrics.address", "'here:65536'"]),
        ('[metrics]\naddress = "::1:9100"\n', ["metrics.address", '"[::1]:9100"', "'::1:9100'"]),
        ('[metrics]\naddress = "[::1]"\n', ["metrics.address", "'[::1]'"]),
        ('[kafka]\nbootstrap = ""\n', ["kafka.bootstrap", "at least 1 character"]),
        ('[kafka]\nprefix = "a b"\n', ["kafka.prefix", "a-zA-Z0-9._-", "'a b'"]),
        ("[kafka.client]\nx = [1]\n", ["kafka.client.x", "text, a number, true or false"]),
        ('[learner]\npreset = "best"\n', ["learner.preset", "'practical' or 'paper'"]),
        (
            '[kafka]\nbootstrp = "x"\n',
            ["kafka.bootstrp", "did you mean kafka.bootstrap?", "Accepted here: boot"],
        ),
        ("[kafak]\nx = 1\n", ["kafak is not a setting", "did you mean kafka?", "Accepted here: challengers"]),
        ("xyz = 1\n", ["xyz is not a setting. Accepted here:", "worker"]),
        ('kafka = "x"\n', ["kafka: Input should be a valid dictionary"]),
        ("[challengers.a]\nbudget = 5\n", ["challengers.a.learner is missing", "learners are forks, arow,"]),
        ("[kafka]\nwindw = 1\n", ["kafka.windw is not a setting; did you mean join.window?"]),
        (
            "[join]\nadress = 1\n",
            ["join.adress is not a setting; did you mean metrics.address or serve.address?"],
        ),
        ("[stream.interactions]\ntopik = 1\n", ["did you mean stream.interactions.topic?"]),
        ('[challengers."a b"]\nlearner = "nogd"\n', ["challengers.a b", "String should match pattern"]),
        ('[challengers.champion]\nlearner = "nogd"\n', ["a challenger cannot be called champion"]),
        ("[kafka\n", ["is not valid TOML", "line 1"]),
    ],
)
def test_a_wrong_file_is_explained_with_its_name_the_key_and_what_is_accepted(
    text: str, parts: list[str]
) -> None:
    message = refusal(write(text))
    assert message.startswith("mine.toml")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("text", "interval"), [("auto", "auto"), ("off", "off"), ("20", 20)])
def test_what_partitions_share_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, interval: object
) -> None:
    monkeypatch.setenv("FORKS_SHARING__INTERVAL", text)
    assert load().sharing.interval == interval


def test_all_errors_are_reported_at_once() -> None:
    message = refusal(write('[join]\nwindow = "x"\nearly = "y"\n[worker]\nbatch = 0\n'))
    for key in ("join.window", "join.early", "worker.batch"):
        assert key in message
    assert len(message.splitlines()) == 3


def test_a_missing_or_unreadable_file_is_named() -> None:
    assert "there is no configuration file nowhere.toml" in refusal(Path("nowhere.toml"))
    path = Path("latin.toml")
    path.write_bytes(b'[kafka]\ngroup = "caf\xe9"\n')
    assert "latin.toml cannot be read" in refusal(path)


@pytest.mark.parametrize(
    ("variable", "value", "parts"),
    [
        ("FORKS_JOIN__WINDOW", "x", ["join.window", "a whole number and a unit"]),
        ("forks_join__window", "x", ["join.window", "a whole number and a unit"]),
        ("FORKS_JOIN", '{"window": "x"}', ["join.window", "a whole number and a unit"]),
        ("FORKS_JOIN", "x", ["join is a table", "JSON"]),
        ("FORKS_KAFKA__CLIENT", '{"a": 1', ["kafka is a table", "JSON"]),
        ("FORKS_WORKER__BATCH", "many", ["worker.batch", "valid integer", "'many'"]),
        ("FORKS_JOIN__WINDW", "5s", ["join.windw", "did you mean join.window?"]),
        (
            "FORKS_JOYN__WINDOW",
            "5s",
            ["no such section; did you mean FORKS_JOIN__WINDOW?", "FORKS_JOIN__..."],
        ),
        (
            "forks_joyn__window",
            "5s",
            ["no such section; did you mean FORKS_JOIN__WINDOW?", "FORKS_JOIN__..."],
        ),
    ],
)
def test_a_wrong_variable_is_explained_with_its_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, parts: list[str]
) -> None:
    monkeypatch.setenv(variable, value)
    message = refusal(write('[join]\nwindow = "1h"\n'))
    assert message.startswith(f"the environment ({variable})")
    for part in parts:
        assert part in message


def test_an_error_names_the_file_where_a_variable_has_another_setting_of_the_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORKS_JOIN", '{"early": "1m"}')
    assert refusal(write('[join]\nwindow = "x"\n')).startswith("mine.toml: join.window")


def test_what_a_variable_lacks_is_explained_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_CHALLENGERS", '{"a": {"budget": 5}}')
    assert refusal().startswith("the environment (FORKS_CHALLENGERS): challengers.a.learner is missing")


@pytest.mark.parametrize(("name", "value"), FIXED.items())
def test_a_setting_that_is_fixed_is_refused_with_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    section, key = name.split(".")
    message = f"{name} is not a setting: its value is fixed at {value}. Remove it"
    assert refusal(write(f"[{section}]\n{key} = {value}\n")) == f"mine.toml: {message}"
    variable = f"FORKS_{section}__{key}".upper()
    monkeypatch.setenv(variable, "1")
    assert refusal() == f"the environment ({variable}): {message}"


def test_what_is_said_to_be_fixed_is_what_the_code_does() -> None:
    native = inspect.signature(BatchProducer).parameters["native"].default
    assert {"registry.timeout": f'"{TIMEOUT:g}s"', "worker.native_produce": str(native).lower()} == FIXED


def test_a_wrong_flag_is_explained_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_KAFKA__PREFIX", "good")
    message = refusal(write('[kafka]\nprefix = "good"\n'), {"kafka.prefix": "a b"})
    assert message.startswith("the command line (--prefix): kafka.prefix")


def test_variables_of_other_parts_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_CACHE_DIR", "somewhere")
    assert load() == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[join]\nwindow = "x"\n', r"broken\.toml: join\.window"),
        (
            "[learner]\nbudgt = 5\n",
            r"learner\.budgt is not a setting; did you mean learner\.budget\? Accepted here: preset, alpha",
        ),
        ("[learner]\nbudget = -1\n", r"learner\.budget = -1 is not accepted: it must be an integer >= 2"),
        ('[learner]\nbudget = "five"\n', r"learner\.budget: Input should be a valid integer.*got 'five'"),
    ],
)
def test_a_worker_refuses_before_it_connects(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    def connect(_: object) -> None:
        pytest.fail("a client was made")

    monkeypatch.setattr(worker, "Admin", connect)
    with pytest.raises(ConfigError, match=message):
        worker.Worker(load(write(text, "broken.toml")))
