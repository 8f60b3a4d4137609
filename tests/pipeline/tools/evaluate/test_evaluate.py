"""`forks evaluate`: its scores are the pipeline's, its figures those of a plain loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from forks import Forks, ForksSettings
from forks.arrays import FloatArray
from forks.validation import progressive, summary
from pipeline.cli import app
from pipeline.config.settings import Learner
from pipeline.errors import ConfigError, DataError
from pipeline.features.tables import Tables, TagTable
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.kuairec_files import DEFAULT_MATRIX
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from pipeline.tools.evaluate import Order, Source, prepare
from tests.support.offline import offline, pairs_of

SMALL = ("--set", "budget=10", "--set", "cycle=50")


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("invented")
    write_files(folder, Size(events=1_500, users=40, videos=100, days=1))
    return folder


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 300 examples whose label is a product of two features."""
    file = tmp_path_factory.mktemp("examples") / "examples.npz"
    X = np.random.default_rng(5).uniform(-1, 1, (300, 2))
    np.savez(file, X=X, y=np.sign(X[:, 0] * X[:, 1]))
    return file


def evaluated(*arguments: object) -> dict[str, Any]:
    """Return the JSON of the last line of standard output."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def in_a_loop(X: FloatArray, y: FloatArray) -> FloatArray:
    learner = Forks(ForksSettings.practical(X.shape[1], budget=10, cycle=50))
    return learner.predict_and_learn_many(X, y)


def test_scores_of_plays_are_those_of_simulate_qa_bit_for_bit(invented: Path) -> None:
    learner = Learner.model_validate({"budget": 10, "cycle": 50})
    trial = prepare(Source(invented), learner)
    pairs = pairs_of(invented)
    tags = TagTable(invented / "item_categories.csv").lists
    expected, versions = offline(pairs, learner_settings(learner, 0), Tables(), tags)
    predictions = progressive(trial.learner, trial.stream)
    assert trial.delayed
    assert versions != list(range(len(pairs)))  # or labels were not late at all
    assert predictions.scores.tolist() == expected
    assert predictions.labels.tolist() == [1.0 if pair.label.watch_ratio > 0.75 else -1.0 for pair in pairs]
    assert len(np.unique(trial.X, axis=0)) > len(pairs) / 2


def test_plays_without_a_table_of_tags_are_evaluated_too(invented: Path, tmp_path: Path) -> None:
    (tmp_path / DEFAULT_MATRIX).write_bytes((invented / DEFAULT_MATRIX).read_bytes())
    with_tags, without = evaluated(invented, *SMALL), evaluated(tmp_path, *SMALL)
    assert with_tags["log_loss"] != without["log_loss"]
    assert with_tags["features"] == without["features"] == 10


def test_with_squared_loss_plays_teach_their_watch_ratio(invented: Path) -> None:
    options = (*SMALL, "--set", "loss=squared", "--at-once", "--limit", 500)
    found = evaluated(invented, *options)
    learner = Learner.model_validate({"budget": 10, "cycle": 50, "loss": "squared"})
    pairs = pairs_of(invented)[:500]
    trial = prepare(Source(invented, order=Order(limit=500, delayed=False)), learner)
    targets = np.array([min(pair.label.watch_ratio, 2.0) - 0.75 for pair in pairs])
    scores = Forks(learner_settings(learner, 0)).predict_and_learn_many(trial.X, targets)
    assert found["loss"] == pytest.approx(np.mean((scores - targets) ** 2))
    assert found["mistakes"] == np.mean((scores > 0) != (targets > 0))
    assert found["log_loss"] is None


def test_on_real_plays_it_is_better_than_the_majority_and_than_anything_linear(kuairec: Path) -> None:
    found = evaluated(kuairec, "--limit", 15_000)
    assert found["events"] == 15_000
    assert found["mistakes"] < 0.32
    assert found["majority"] > 0.45
    assert found["auc"] > 0.75
    assert found["regret"] < 0.0


def test_figures_of_examples_are_those_of_a_plain_loop(examples: Path) -> None:
    with np.load(examples) as arrays:
        X, y = arrays["X"], arrays["y"]
    scores = in_a_loop(X, y)
    found = evaluated(examples, *SMALL)
    assert found["mistakes"] == np.mean((scores > 0) != (y > 0))
    assert found["log_loss"] == pytest.approx(np.mean(np.log1p(np.exp(-y * scores))))
    assert found["majority"] == min(np.mean(y > 0), np.mean(y < 0))
    assert (found["events"], found["features"], found["delayed"]) == (300, 2, False)
    assert (found["learner"], found["changes"]) == ("practical", {"budget": 10, "cycle": 50})
    assert found["seconds"] > 0.0
    assert sum(piece["events"] for piece in found["windows"]) == 300


def test_a_permutation_is_a_seeds_order_of_all_rows_and_the_limit_its_first(examples: Path) -> None:
    with np.load(examples) as arrays:
        X, y = arrays["X"], arrays["y"]
    rows = np.random.default_rng(3).permutation(300)[:200]
    found = evaluated(examples, *SMALL, "--permutation", 3, "--limit", 200)
    assert found["events"] == 200
    assert found["mistakes"] == np.mean((in_a_loop(X[rows], y[rows]) > 0) != (y[rows] > 0))


def test_plays_in_random_order_have_their_labels_at_once(invented: Path) -> None:
    found = evaluated(invented, *SMALL, "--permutation", 1, "--limit", 300)
    assert (found["events"], found["delayed"]) == (300, False)


def test_labels_at_once_teach_earlier_than_labels_that_are_delayed(invented: Path) -> None:
    at_once = evaluated(invented / DEFAULT_MATRIX, *SMALL, "--at-once")
    delayed = evaluated(invented / DEFAULT_MATRIX, *SMALL, "--delays")
    assert (at_once["delayed"], delayed["delayed"]) == (False, True)
    assert at_once["log_loss"] != delayed["log_loss"]
    assert at_once["positive"] == delayed["positive"]


def test_the_same_examples_give_the_same_figures_from_every_kind_of_file(
    examples: Path, tmp_path: Path
) -> None:
    with np.load(examples) as arrays:
        rows = list(zip(arrays["X"].tolist(), arrays["y"].tolist(), strict=True))
    csv, text = tmp_path / "examples.csv", tmp_path / "examples.libsvm"
    csv.write_text("\n".join(["a,b,y", *(f"{a!r},{b!r},{int(y > 0)}" for (a, b), y in rows)]))
    text.write_text("\n".join(f"{y:+g} 1:{a!r} 2:{b!r}" for (a, b), y in rows))
    figures = [evaluated(file, *SMALL) for file in (examples, csv, text)]
    for found in figures:
        del found["seconds"]
    assert figures[0] == figures[1] == figures[2]


def test_the_papers_preset_has_no_probabilities_and_says_so(examples: Path) -> None:
    arguments = (examples, "--preset", "paper", "--set", "loss=hinge", "--set", "width=0.5", "--window", 150)
    found = evaluated(*arguments)
    assert (found["learner"], found["loss_name"]) == ("paper", "hinge")
    assert found["log_loss"] is found["brier"] is found["calibration_error"] is None
    assert found["auc"] > 0.5
    assert [piece["events"] for piece in found["windows"]] == [150, 150]
    printed = run(*arguments).stdout
    assert "paper, loss = hinge, width = 0.5: 300 events of 2 features, labels known at once" in printed
    assert f"{found['mistakes']:.2%}" in printed
    assert "151 - 300" in printed


def test_without_regret_all_else_is_there(examples: Path) -> None:
    with_regret, without = evaluated(examples, *SMALL), evaluated(examples, *SMALL, "--no-regret")
    assert with_regret["regret"] is not None
    assert without["regret"] is None
    assert without["auc"] == with_regret["auc"]


def test_where_no_best_linear_predictor_is_found_a_way_out_is_named(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise RuntimeError("the best linear predictor was not found: too steep")

    monkeypatch.setattr(summary, "best_linear", lost)
    error = run(examples, *SMALL).exception
    assert isinstance(error, DataError)
    assert "too steep" in str(error)
    assert "--no-regret" in str(error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "width"), "--set width: expected is NAME=VALUE"),
        (("--set", "breadth=2"), "learner.breadth is not a setting. Accepted here: preset, alpha"),
        (("--set", "width=-2"), "learner.width = -2"),
        (("--set", "width=wide"), "learner.width: Input should be a valid number"),
        (("--set", "preset=paper"), "--preset paper"),
        (("--delays",), "has no times"),
        (("--label", "y"), "only a CSV file of examples has a label column"),
    ],
)
def test_a_wrong_option_is_named(options: tuple[str, ...], message: str, examples: Path) -> None:
    error = run(examples, *options).exception
    assert isinstance(error, ConfigError)
    assert message in str(error)


def test_delays_do_not_go_with_a_random_order(invented: Path) -> None:
    error = run(invented, "--delays", "--permutation", 1).exception
    assert isinstance(error, ConfigError)
    assert "events in random order have no times" in str(error)


def test_what_is_not_there_or_of_no_use_is_a_wrong_file(tmp_path: Path) -> None:
    useless = tmp_path / "useless.csv"
    useless.write_text("user_id,video_id,play_duration,video_duration,timestamp,watch_ratio\n1,2,3,4,,5\n")
    for path, message in (
        (tmp_path / "missing.npz", "there is no such file or folder"),
        (useless, "none of the 1 rows can be used"),
        (tmp_path, "there is no small_matrix.csv"),
    ):
        error = run(path).exception
        assert isinstance(error, DataError)
        assert message in str(error)
