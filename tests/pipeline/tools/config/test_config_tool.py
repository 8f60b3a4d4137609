"""A commented configuration, what is in force and why, and the check of a file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.settings import LEARNERS, Config
from pipeline.errors import ConfigError
from pipeline.model.factory import ModelFactory
from pipeline.model.rival import RIVALS
from pipeline.tools.config.template import RARE, template

SECRET = "hunter2-of-the-test"


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.upper().startswith("FORKS_"):
            monkeypatch.delenv(name)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["config", *arguments])


def test_the_learners_of_messages_are_those_that_there_are() -> None:
    assert sorted(LEARNERS) == sorted(["forks", *RIVALS])


def test_a_new_file_changes_nothing_and_explains_each_setting_in_a_line() -> None:
    assert run("init", "--out", "forks.toml").exit_code == 0
    assert load() == Config()
    text = Path("forks.toml").read_text()
    lines = text.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 100
    settings = [
        (name, key)
        for name, field in Config.model_fields.items()
        if name not in {"stream", "challengers"}
        for key in type(field.default).model_fields
    ]
    for name, key in settings:
        section = text.partition(f"\n[{name}] ")[2].partition("\n\n")[0]
        found = re.search(rf"^#{key} = .+ # [A-Z].+[^.]$", section, re.MULTILINE)
        assert (found is None) == (f"{name}.{key}" in RARE), f"{name}.{key}"
    assert {f"{name}.{key}" for name, key in settings} >= RARE
    assert isinstance(run("init", "--out", "forks.toml").exception, ConfigError)


def test_with_every_comment_sign_removed_it_still_means_the_defaults() -> None:
    text = re.sub(r"^#(?=[a-z_]+ = (?!\.\.\. ))", "", template(), flags=re.MULTILINE)
    text = text.replace('learner = "forks"', '#learner = "forks"').replace("budget = 320", "#budget = 320")
    Path("forks.toml").write_text(text)
    parsed, config = tomllib.loads(text), load()
    assert parsed["join"]["window"] == "6h"
    assert ModelFactory(config).settings(1) == ModelFactory(Config()).settings(1)
    for name in set(Config.model_fields) - {"learner"}:
        assert getattr(config, name) == getattr(Config(), name)


def test_what_is_in_force_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("password").write_text(SECRET)
    Path("bootstrap").write_text("elsewhere:1")
    Path("mine.toml").write_text(
        """
        [kafka]
        group = "file"
        prefix = "file."
        [kafka.client]
        "sasl.password.file" = "password"
        "client.id" = "x"
        [join]
        window = "90m"
        [learner]
        budget = 100
        [challengers.a]
        learner = "arow"
        """
    )
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP_FILE", "bootstrap")
    monkeypatch.setenv("FORKS_KAFKA__PREFIX", "environment.")
    monkeypatch.setenv("FORKS_KAFKA__CLIENT", json.dumps({"sasl.username": SECRET}))
    monkeypatch.setenv("FORKS_JOIN", '{"early": "1m"}')
    result = run("show", "--config", "mine.toml", "--group", "flag", "--json")
    assert result.exit_code == 0
    assert SECRET not in result.output
    found = {each["key"]: each for each in json.loads(result.stdout)["settings"]}
    expected = {
        "kafka.bootstrap": ("elsewhere:1", "environment", "FORKS_KAFKA__BOOTSTRAP_FILE"),
        "kafka.prefix": ("environment.", "environment", "FORKS_KAFKA__PREFIX"),
        "kafka.group": ("flag", "flag", "--group"),
        "kafka.instance": (None, "default", None),
        "kafka.client.sasl.username": ("***", "environment", "FORKS_KAFKA__CLIENT"),
        "kafka.client.sasl.password": ("***", "file", "mine.toml"),
        "kafka.client.client.id": ("***", "file", "mine.toml"),
        "join.window": ("90m", "file", "mine.toml"),
        "join.early": ("1m", "environment", "FORKS_JOIN"),
        "join.max_jump": ("7d", "default", None),
        "sharing.align": (None, "default", None),
        "learner.budget": (100, "file", "mine.toml"),
        "challengers.a.learner": ("arow", "file", "mine.toml"),
        "stream.target.above": (0.75, "default", None),
    }
    assert {
        key: (found[key]["value"], found[key]["source"], found[key]["origin"]) for key in expected
    } == expected


@pytest.mark.parametrize("variable", [False, True])
def test_a_setting_of_a_definition_in_a_file_comes_from_there(
    monkeypatch: pytest.MonkeyPatch, variable: bool
) -> None:
    Path("shop.toml").write_text((files("pipeline.config") / "streams/kuairec.toml").read_text())
    if variable:
        monkeypatch.setenv("FORKS_STREAM", '"shop.toml"')
    else:
        Path("forks.toml").write_text('stream = "shop.toml"\n')
    found = {each["key"]: each for each in json.loads(run("show", "--json").stdout)["settings"]}
    name, key = found["stream.name"], found["stream.key"]
    assert (name["value"], name["source"], name["origin"]) == ("kuairec", "file", "shop.toml")
    assert (key["value"], key["source"], key["origin"]) == (None, "default", None)


def test_what_is_shown_is_a_file_that_means_the_same() -> None:
    Path("mine.toml").write_text('[join]\nwindow = "90m"\nidle_advance = "5s"\n[worker]\nbatch = 7\n')
    shown = run("show", "--config", "mine.toml")
    assert 'window = "90m"' in shown.stdout
    Path("again.toml").write_text(shown.stdout)
    assert load(Path("again.toml")) == load(Path("mine.toml"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[join]\nwindw = '6h'\n", "join.windw is not a setting; did you mean join.window?"),
        ("[learner]\nbugdet = 10\n", "learner.bugdet is not a setting; did you mean learner.budget?"),
        ("[challengers.a]\nr = 1.0\n", "challengers.a.learner is missing. The learners are forks, arow,"),
        ("[challengers.a]\nlearner = 'arrow'\n", "there is no learner 'arrow'; did you mean arow?"),
        ("[features]\nusers = 'nowhere.csv'\n", "nowhere.csv"),
    ],
)
def test_a_check_refuses_what_a_worker_would(text: str, error: str) -> None:
    Path("mine.toml").write_text(text)
    refused = run("check", "--config", "mine.toml")
    assert error in str(refused.exception)
    if "nowhere" not in text:
        answer = run("check", "--config", "mine.toml", "--json")
        assert answer.exit_code == 2
        checked = json.loads(answer.stdout)
        assert not checked["ok"]
        assert error in checked["errors"][0]


def test_a_check_accepts_what_is_right() -> None:
    Path("forks.toml").write_text("[worker]\nbatch = 7\n")
    assert run("check").stdout == "forks.toml is as it should be\n"
    assert json.loads(run("check", "--json").stdout) == {"ok": True, "errors": [], "warnings": []}


def wide(columns: int, count: int) -> None:
    """Write the configuration of a stream with so many columns, in several categories."""
    features = "".join(
        f'[features.f{each}]\nkind = "category"\nfield = "/f{each}"\ncolumns = {columns}\n'
        for each in range(count)
    )
    definition = files("pipeline.config").joinpath("streams/kuairec.toml").read_text("utf-8")
    Path("stream.toml").write_text(definition + features)
    Path("forks.toml").write_text('stream = "stream.toml"\n')


def test_a_check_says_what_many_columns_cost() -> None:
    wide(400, 1)
    found = run("check").stderr
    assert re.search(r"warning: the learner has \d+ features, so an event takes about 0\.\d ms, and", found)
    assert len(json.loads(run("check", "--json").stdout)["warnings"]) == 1
    wide(1000, 3)
    with pytest.raises(ConfigError, match=r"learner: .* an event takes about 2\d\.\d ms, 20 at most: leave"):
        ModelFactory(load(Path("forks.toml")))
