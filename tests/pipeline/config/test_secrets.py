"""Secrets: where they come from, and that nothing shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.loader import load
from pipeline.config.settings import Config, Kafka
from pipeline.errors import ConfigError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.new_client import client_settings
from pipeline.kafka.clients import groupless_consumer, transactional_producer

SECRET = "hunter2-hunter3"
"""Contained in every secret that these tests plant."""


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep settings of the caller's environment and folder out."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.upper().startswith("FORKS_"):
            monkeypatch.delenv(name)


def everything_said(error: BaseException) -> str:
    """The text of an error and of all errors that hang on it, with the objects that they hold."""
    texts = ["".join(traceback.format_exception(error))]
    seen: BaseException | None = error
    while seen is not None:
        texts.append(f"{seen!r} {seen.args!r} {vars(seen)!r} {getattr(seen, 'object', '')!r}")
        texts.append(f"{getattr(seen, 'doc', '')}")
        seen = seen.__context__
    return "\n".join(texts)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as caught:
        call()
    assert SECRET not in everything_said(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            f'[kafka.client]\nsasl.password = "{SECRET}"\n',
            ["mine.toml: kafka.client: ", 'write "sasl.password" = ... under [kafka.client]'],
        ),
        (
            f'[kafka.client]\nsecurity.protocol = "SASL_SSL"\nssl.key.password = "{SECRET}"\n',
            ['"security.protocol" = ..., "ssl.key.password" = ...'],
        ),
        (f'kafka.client.sasl.password = "{SECRET}"\n', ['"sasl.password" = ...']),
        (f'[kafka]\nclient = "{SECRET}"\n', ["kafka.client: Input should be a valid dictionary"]),
        (f'[kafka]\n"sasl.password" = "{SECRET}"\n', ["kafka.sasl.password is not a setting"]),
        (f'[kafka.client]\n"sasl.password" = ["{SECRET}"]\n', ["kafka.client.sasl.password: a setting"]),
        (f'[kafka.client]\n"sasl.password" = {{a = "{SECRET}"}}\n', ["kafka.client.sasl.password: a sett"]),
        (f'[[kafka]]\nclient = {{"sasl.password" = "{SECRET}"}}\n', ["mine.toml: kafka: Input should be"]),
        (f"[kafka.client]\nsasl.password = {SECRET}\n", ["is not valid TOML", "line 2"]),
        (f'[kafka.client]\n"sasl.password" = "{SECRET}\n', ["is not valid TOML", "line 2"]),
        (f'[kafka.client]\n"sasl.password" = "{SECRET}\udcff"\n', ["is not text in UTF-8"]),
        (
            f'[registry.client]\n"basic.auth.user.info" = ["{SECRET}"]\n',
            ["registry.client.basic.auth.user.info: a s"],
        ),
        (
            f'[registry.client]\nbasic.auth.user.info = "{SECRET}"\n',
            ['write "basic.auth.user.info" = ... under [reg'],
        ),
        (
            f'[registry.client]\nurl = "{SECRET}"\n',
            ["registry.client: url: url stands in [registry]"],
        ),
        (
            f'[registry]\nurl = "http://me:{SECRET}@127.0.0.1"\n',
            ["registry.url: it begins with http://", "no credentials"],
        ),
        (f'[registry]\nclient = "{SECRET}"\n', ["registry.client: Input should be a valid dictionary"]),
        (f'[worker]\nbatch = 0\n[kafka.client]\n"sasl.password" = "{SECRET}"\n', ["worker.batch", "got 0"]),
    ],
)
def test_no_error_about_a_file_shows_a_secret(text: str, parts: list[str]) -> None:
    Path("mine.toml").write_text(text, errors="surrogateescape")
    message = refusal(lambda: load(Path("mine.toml")))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("variable", "value", "part"),
    [
        ("FORKS_KAFKA__CLIENT", f'"{SECRET}"', "kafka.client: Input should be a valid dictionary"),
        ("FORKS_KAFKA__CLIENT", SECRET, "kafka is a table"),
        ("FORKS_KAFKA__CLIENT", f'{{"sasl.password": "{SECRET}', "kafka is a table"),
        ("FORKS_KAFKA__CLIENT", f'{{"sasl.password": ["{SECRET}"]}}', "kafka.client.sasl.password: "),
        ("FORKS_KAFKA__CLIENT", f'{{"sasl": {{"password": "{SECRET}"}}}}', 'write "sasl.password" = ...'),
        ("FORKS_KAFKA__CLIENT__SASL__PASSWORD", SECRET, 'write "sasl.password" = ...'),
        ("FORKS_KAFKA__CLIENT_FILE", f'{{"sasl.password": "{SECRET}"}}', "its name is not shown"),
        ("FORKS_KAFKA", f'"{SECRET}"', "kafka: Input should be"),
        ("FORKS_KAFKA", f'[{{"client": {{"sasl.password": "{SECRET}"}}}}]', "kafka: Input should be"),
        ("FORKS_KAFKA", f'{{"clint": {{"sasl.password": "{SECRET}"}}}}', "did you mean kafka.client?"),
    ],
)
def test_no_error_about_a_variable_shows_a_secret(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, part: str
) -> None:
    monkeypatch.setenv(variable, value)
    message = refusal(load)
    assert message.startswith(f"the environment ({variable})")
    assert part in message


def test_values_of_the_clients_are_shown_by_nothing_and_revealed_to_the_clients() -> None:
    client = {"sasl.password": SECRET, "sasl.pasword": f"{SECRET}-x", "ssl.key.password": 12345, "a": True}
    config = Config(kafka=Kafka.model_validate({"client": client}))
    for shown in (repr(config), str(config), config.model_dump_json(), f"{config.model_dump()}"):
        assert SECRET not in shown
        assert "12345" not in shown
        assert "sasl.pasword" in shown
    revealed = client_settings(config.kafka)
    assert {name: revealed[name] for name in client} == client


def test_a_tree_that_is_built_in_code_has_errors_without_secrets() -> None:
    for client in (SECRET, {"sasl.password": [SECRET]}, {"sasl": {"password": SECRET}}):
        with pytest.raises(ValueError, match="client") as caught:
            Kafka.model_validate({"client": client})
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_settings_of_the_registry_s_client_are_kept_the_same_way() -> None:
    Path("password").write_text(f"me:{SECRET}\n")
    Path("mine.toml").write_text(
        '[registry]\nurl = "http://127.0.0.1:1,https://b:2/apis"\n'
        '[registry.client]\n"basic.auth.user.info.file" = "password"\n'
    )
    registry = load(Path("mine.toml")).registry
    assert SECRET not in repr(registry) + registry.model_dump_json()
    assert registry.client["basic.auth.user.info"].get_secret_value() == f"me:{SECRET}"
    Path("mine.toml").write_text('[registry.client]\n"ssl.ca.location" = "missing.pem"\n')
    assert refusal(lambda: load(Path("mine.toml"))) == (
        'registry.client: "ssl.ca.location": missing.pem does not exist'
    )


def test_a_setting_of_librdkafka_may_be_in_a_file() -> None:
    Path("password").write_text(f"{SECRET}\n")
    Path("mine.toml").write_text(
        '[kafka.client]\n"sasl.password.file" = "password"\n"sasl.username" = "me"\n'
    )
    kafka = load(Path("mine.toml")).kafka
    settings = client_settings(kafka)
    assert (settings["sasl.password"], settings["sasl.username"]) == (SECRET, "me")
    assert "sasl.password.file" not in settings
    assert SECRET not in repr(kafka)


def test_the_files_that_librdkafka_reads_itself_are_passed_on() -> None:
    Path("assertion").write_text(SECRET)
    Path("mine.toml").write_text('[kafka.client]\n"sasl.oauthbearer.assertion.file" = "assertion"\n')
    settings = client_settings(load(Path("mine.toml")).kafka)
    assert settings["sasl.oauthbearer.assertion.file"] == "assertion"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (SECRET.encode() + b"\xff", "is not text in UTF-8"),
        (SECRET.encode() * 2**17, "has more than 1,048,576 bytes"),
    ],
)
def test_a_file_of_a_secret_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, content: bytes | None, reason: str
) -> None:
    if content is not None:
        Path("password").write_bytes(content)
    Path("mine.toml").write_text('[kafka.client]\n"sasl.password.file" = "password"\n')
    assert f'kafka.client: "sasl.password.file": password {reason}' in refusal(
        lambda: load(Path("mine.toml"))
    )
    monkeypatch.setenv("FORKS_KAFKA__GROUP_FILE", "password")
    assert f"the environment (FORKS_KAFKA__GROUP_FILE): password {reason}" in refusal(load)


def test_a_secret_both_in_a_file_and_beside_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("password").write_text(SECRET)
    Path("mine.toml").write_text('[kafka.client]\n"sasl.password.file" = "password"\n')
    monkeypatch.setenv("FORKS_KAFKA__CLIENT", f'{{"sasl.password": "{SECRET}"}}')
    message = refusal(lambda: load(Path("mine.toml")))
    assert 'both "sasl.password" and "sasl.password.file" are set' in message


def test_variables_may_name_files_of_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bootstrap").write_text("kafka-1:9093\r\n")
    Path("client.json").write_text(json.dumps({"sasl.password": SECRET}))
    Path("worker.json").write_text('{"batch": 7}')
    Path("forks.toml").write_text('[kafka.client]\n"sasl.username" = "me"\n')
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP_FILE", "bootstrap")
    monkeypatch.setenv("forks_kafka__client_file", "client.json")
    monkeypatch.setenv("FORKS_WORKER_FILE", "worker.json")
    monkeypatch.setenv("FORKS_OTHER_FILE", "of another program")
    config = load()
    assert (config.kafka.bootstrap, config.worker.batch) == ("kafka-1:9093", 7)
    settings = client_settings(config.kafka)
    assert (settings["sasl.username"], settings["sasl.password"]) == ("me", SECRET)


def test_a_variable_and_its_file_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("group").write_text(SECRET)
    monkeypatch.setenv("FORKS_KAFKA__GROUP_FILE", "group")
    monkeypatch.setenv("FORKS_KAFKA__GROUP", SECRET)
    assert "both FORKS_KAFKA__GROUP and FORKS_KAFKA__GROUP_FILE are set" in refusal(load)


def test_a_wrong_value_from_the_file_of_a_variable_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("batch").write_text(SECRET)
    monkeypatch.setenv("FORKS_WORKER__BATCH_FILE", "batch")
    message = refusal(load)
    assert message.startswith("the environment (FORKS_WORKER__BATCH_FILE): worker.batch: Input should be")


@pytest.mark.parametrize(
    ("key", "path", "part"),
    [
        ("ssl.ca.location", "nowhere.pem", '"ssl.ca.location": nowhere.pem does not exist'),
        ("ssl.key.location", f'-----BEGIN "{SECRET}"\n', "its name is not shown"),
        ("ssl.key.location", "\0", "does not exist"),
    ],
)
def test_a_certificate_that_is_not_there_is_named(key: str, path: str, part: str) -> None:
    Path("mine.toml").write_text(f'[kafka.client]\n"{key}" = {json.dumps(path)}\n')
    assert part in refusal(lambda: load(Path("mine.toml")))
    Path("mine.toml").write_text('[kafka.client]\n"ssl.ca.location" = "probe"\n')
    load(Path("mine.toml"))


PASSWORD_MISSING = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me"}


@pytest.mark.parametrize(
    ("client", "part"),
    [
        ({"sasl.pasword": SECRET}, 'No such configuration property: "sasl.pasword"'),
        (PASSWORD_MISSING, "sasl.username and sasl.password must be set"),
        ({"security.protocol": SECRET}, '"***" for configuration property "security.protocol"'),
        ({"plugin.library.paths": SECRET}, "***"),
        ({"security.protocol": "SSL", "ssl.key.pem": SECRET}, "ssl.key.pem failed"),
        ({"socket.timeout.ms": 123456789}, "value *** is outside allowed range"),
        ({"sasl.password": f"{SECRET}\0"}, "'sasl.password' has a null character"),
        ({"sasl.password": f"{SECRET}\ud800"}, "half a surrogate pair"),
        ({"error_cb": SECRET}, '"error_cb" takes an object of Python'),
        ({"logger": SECRET}, '"logger" takes an object of Python'),
    ],
)
def test_settings_that_librdkafka_refuses_are_wrong_settings(client: dict[str, object], part: str) -> None:
    config = Config(kafka=Kafka.model_validate({"client": client}))
    for make in (
        lambda: Admin(config.kafka),
        lambda: groupless_consumer(config.kafka),
        lambda: transactional_producer(config.kafka, config.worker, "one", 10**6),
    ):
        assert part in refusal(make)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slip", "command"),
    [
        ("unknown name", ["run", "--workers", "2"]),
        ("unknown name", ["topics", "check"]),
        ("no quotes", ["inspect", "outcomes"]),
        ("unreachable", ["run", "--json"]),
    ],
)
def test_commands_print_no_secret_wherever_it_comes_from(slip: str, command: list[str]) -> None:
    """The secrets are in quoted names of the file, in a variable, and in files that both name."""
    lines = {
        "unknown name": f'"sasl.pasword" = "{SECRET}-1"',
        "no quotes": f'sasl.password = "{SECRET}-1"',
        "unreachable": f'"sasl.password" = "{SECRET}-1"',
    }
    Path("key").write_text(f"{SECRET}-2\n")
    Path("forks.toml").write_text(f'[kafka.client]\n{lines[slip]}\n"ssl.key.password.file" = "key"\n')
    Path("bootstrap").write_text("127.0.0.1:1\n")
    variables = {
        "FORKS_KAFKA__CLIENT": json.dumps({"ssl.keystore.password": f"{SECRET}-3", "debug": "all"}),
        "FORKS_KAFKA__BOOTSTRAP_FILE": "bootstrap",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli import main; main()", *command],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == (3 if slip == "unreachable" else 2), done.stderr
    if "--json" in command:
        [last] = [line for line in done.stderr.splitlines() if '"exit_code"' in line]
        assert json.loads(last)["exit_code"] == done.returncode
    if slip == "unknown name":
        assert 'No such configuration property: "sasl.pasword"' in done.stderr
