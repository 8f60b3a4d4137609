"""`python -m research`: each experiment end to end on synthetic data, its files, and how it resumes."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner, Result

from pipeline.errors import ConfigError, DataError
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from research.command import app
from research.experiments import EXPERIMENTS, budgets, decompositions, update_rate
from research.harness import runner
from research.harness.trials import Trial
from research.reproduce.data import DataFolder

pytestmark = pytest.mark.slow
ALWAYS = {
    *("stream", "learner", "budget", "mistakes", "mistakes_sd", "mistakes_authors", "paper", "seconds"),
    "majority",
}
SETS = ("german", "svmguide3", "spambase", "cod-rna", "w7a", "ijcnn1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sets under the papers' names, each of 520 rows, one in four positive."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "libsvm").mkdir()
    chance = np.random.default_rng(0)
    for name in SETS:
        X = chance.normal(size=(520, 2))
        np.savez(folder / "libsvm" / f"{name}.npz", X=X, y=np.where(np.arange(520) % 4 == 0, 1, -1))
    (folder / "graphs").mkdir()
    ring = csr_array(np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0))
    np.savez(
        folder / "graphs" / "coauthor.npz",
        data=ring.data,
        indices=ring.indices,
        indptr=ring.indptr,
        shape=ring.shape,
        labels=np.arange(12) // 6,
    )
    return folder


@pytest.fixture(scope="module")
def with_plays(data: Path) -> Path:
    """The same, with plays in KuaiRec's columns."""
    write_files(data / "kuairec", Size(events=400, users=20, videos=50, days=1))
    return data


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def reproduced(*arguments: object) -> dict[str, Any]:
    """What the last line of standard output says."""
    result = run(*arguments, "--jobs", 1, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def german(learner: str) -> list[str]:
    return ["--stream", "german", "--learner", learner]


@pytest.mark.parametrize(
    ("experiment", "stream", "learners"),
    [
        ("table2", "german", ("FORKS", "FORKS practical")),
        ("table3", "german-1", ("FORKS", "Perceptron")),
        ("table4", "spambase-2", ("FORKS", "Perceptron")),
    ],
)
def test_an_experiment_runs_and_writes_its_tables(
    experiment: str, stream: str, learners: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    only = ["--stream", stream]
    only += [part for learner in learners for part in ("--learner", learner)]
    found = reproduced(experiment, "--runs", 2, "--data", data, "--out", tmp_path, *only)
    assert (found["experiment"], found["runs"]) == (experiment, 2)
    assert [(row["stream"], row["learner"]) for row in found["rows"]] == [(stream, name) for name in learners]
    for row in found["rows"]:
        assert row.keys() >= ALWAYS
        assert 0.0 < row["mistakes"] < 100.0
        assert row["mistakes_authors"] <= row["mistakes"]
    printed = EXPERIMENTS[experiment].printed[stream].get("FORKS")
    assert found["rows"][0]["paper"] == (printed.mean if printed else None)
    assert json.loads((tmp_path / f"{experiment}.json").read_text()) == found
    with (tmp_path / f"{experiment}.csv").open() as lines:
        assert [float(line["mistakes"]) for line in csv.DictReader(lines)] == [
            row["mistakes"] for row in found["rows"]
        ]
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2 * len(learners)


def assert_drawn(folder: Path, experiment: str, *names: str) -> None:
    svg = (folder / f"{experiment}.svg").read_text()
    assert svg.startswith("<?xml")
    assert all(f"<!-- {name} -->" in svg for name in names)
    assert (folder / f"{experiment}.png").read_bytes().startswith(b"\x89PNG")


def test_update_rates_are_run_with_both_decompositions_and_drawn(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_rate, "RATES", (0.5, 0.05))
    found = reproduced("figure1", "--runs", 2, "--data", data, "--out", tmp_path)
    assert [(row["learner"], row["update_rate"]) for row in found["rows"]] == [
        ("FORKS, TISVD", 0.5),
        ("FORKS, full SVD", 0.5),
        ("FORKS, TISVD", 0.05),
        ("FORKS, full SVD", 0.05),
    ]
    assert all(row.keys() >= ALWAYS for row in found["rows"])
    assert_drawn(tmp_path, "figure1", "FORKS, TISVD", "FORKS, full SVD", "seconds")


def test_budgets_are_run_on_plays_and_drawn(
    with_plays: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BUDGETS", (20, 30))
    only = ("--learner", "FORKS", "--learner", "NOGD", "--learner", "FORKS practical")
    found = reproduced("figure2", "--runs", 2, "--data", with_plays, "--out", tmp_path, *only)
    rows = [(row["learner"], row["loss"], row["budget"]) for row in found["rows"]]
    both = [(name, loss, 20) for loss in ("hinge", "squared_hinge") for name in ("NOGD", "FORKS")]
    assert rows[:4] == both
    assert rows[-1] == ("FORKS practical", "logistic", 30)
    assert len({row["majority"] for row in found["rows"]}) == 1
    assert_drawn(tmp_path, "figure2", "KuaiRec, squared hinge loss, budgets 20 to 30")


def test_features_of_plays_are_worked_out_in_the_runs_own_order(with_plays: Path) -> None:
    plays = DataFolder(with_plays).plays()
    first, second = plays.rows(0), plays.rows(1)
    assert first.y.sum() == second.y.sum()
    assert not np.array_equal(np.sort(first.X, axis=0), np.sort(second.X, axis=0))
    np.testing.assert_array_equal(first.X, plays.rows(0).X)


def test_decompositions_are_timed_and_drawn_without_any_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompositions, "UPDATES", (2, 4))
    found = reproduced("figure3", "--runs", 2, "--data", tmp_path / "none", "--out", tmp_path)
    assert [(row["learner"], row["updates"]) for row in found["rows"]][:4] == [
        ("TISVD", 2),
        ("randomised SVD", 2),
        ("full SVD", 2),
        ("TISVD", 4),
    ]
    assert all(row["mistakes"] is None and row["seconds"] > 0.0 for row in found["rows"])
    assert_drawn(tmp_path, "figure3", "randomised SVD")


def test_graphs_are_asked_for_labels_and_drawn(data: Path, tmp_path: Path) -> None:
    found = reproduced("graphs", "--runs", 2, "--data", data, "--out", tmp_path, "--stream", "coauthor")
    assert [row["learner"] for row in found["rows"]] == [
        "GPA",
        "OKL",
        "OKL, unsure mistakes only",
        "OKSG",
        "AKSG",
    ]
    for row in found["rows"]:
        assert 0.0 < row["queries"] <= 100.0
        assert row["majority"] == 50.0
        assert row["mistakes_authors"] is None
    assert_drawn(tmp_path, "graphs", "coauthor", "AKSG")


def test_a_graph_that_is_not_one_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    np.savez(tmp_path / "graphs" / "cora.npz", labels=[0, 1])
    error = run("graphs", "--jobs", 1, "--data", tmp_path, "--out", tmp_path, "--stream", "cora").exception
    assert isinstance(error, DataError)
    assert "cora.npz: cannot be read; expected an .npz of data, indices, indptr and shape" in str(error)
    error = run("graphs", "--data", tmp_path, "--out", tmp_path, "--stream", "coauthor").exception
    assert isinstance(error, DataError)
    assert f"{tmp_path / 'graphs' / 'coauthor.npz'}: no such file. Get the graph" in str(error)


def test_the_majority_is_the_streams_not_the_sets(data: Path, tmp_path: Path) -> None:
    options = ("--runs", 1, "--data", data, "--out", tmp_path, "--learner", "Perceptron")
    (plain,) = reproduced("table2", *options, "--stream", "german")["rows"]
    (flipped,) = reproduced("table3", *options, "--stream", "german-1")["rows"]
    assert plain["majority"] == 25.0
    assert 40.0 < flipped["majority"] <= 50.0


def test_a_table_shows_the_papers_figure_both_counts_and_the_majority(data: Path, tmp_path: Path) -> None:
    options = (
        "table2",
        "--runs",
        1,
        "--data",
        data,
        "--out",
        tmp_path,
        "--stream",
        "german",
        "--learner",
        "FORKS",
    )
    (row,) = reproduced(*options)["rows"]
    output = run(*options).stdout
    for text in ("26.43 ± 0.56", f"{row['mistakes']:.2f} ± 0.00", f"{row['mistakes_authors']:.2f} ± 0.00"):
        assert text in output
    assert "majority class" in output
    assert "25.00" in output


def test_the_same_command_goes_on_and_works_nothing_out_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_out: list[Any] = []

    def watched(trial: Trial) -> dict[str, float]:
        worked_out.append(trial.key()["run"])
        if len(worked_out) == 3:
            raise KeyboardInterrupt
        return trial.result()

    monkeypatch.setattr(runner, "result_of", watched)
    options = ["table2", "--data", data, "--out", tmp_path, "--jobs", 1, *german("Perceptron")]
    stopped = run(*options, "--runs", 4)
    assert stopped.exit_code == 130
    assert "the same command continues from there" in " ".join(stopped.stderr.split())
    assert not (tmp_path / "table2.json").exists()
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2
    again = run(*options, "--runs", 5, "--json")
    assert again.exit_code == 0
    assert worked_out == [0, 1, 2, 2, 3, 4]
    assert json.loads(again.stdout)["rows"][0]["runs"] == 5


def test_ctrl_c_ends_all_processes_and_what_is_done_is_kept(data: Path, tmp_path: Path) -> None:
    options = ["table2", "--data", str(data), "--out", str(tmp_path), *german("FORKS practical")]
    program = [sys.executable, "-m", "research"]
    command = [*program, *options, "--runs", "1000", "--jobs", "2"]
    results = tmp_path / "results.jsonl"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (results.exists() and results.stat().st_size):
            time.sleep(0.02)
        helpers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=200)
    assert process.returncode == 130, stderr
    assert "the same command continues from there" in stderr
    assert len(helpers) >= 2
    _, alive = psutil.wait_procs(helpers, timeout=60)
    assert not alive
    done = len(results.read_text().splitlines())
    before = results.read_bytes()
    assert run(*options, "--runs", 1, "--jobs", 1).exit_code == 0
    after = results.read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) - done in {0, 1}  # the first run's result may not have been the first


def test_a_result_that_was_cut_short_is_dropped_with_a_note(data: Path, tmp_path: Path) -> None:
    options = ["table2", "--runs", 2, "--data", data, "--out", tmp_path, *german("Perceptron")]
    before = reproduced(*options)["rows"]
    file = tmp_path / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-5])
    again = run(*options, "--jobs", 1, "--json")
    assert "the last line was incomplete" in again.stderr
    after = json.loads(again.stdout)["rows"]
    assert [row["mistakes"] for row in after] == [row["mistakes"] for row in before]


def test_results_of_other_data_are_not_reused(data: Path, tmp_path: Path) -> None:
    options = (
        "table2",
        "--runs",
        1,
        "--out",
        tmp_path / "out",
        "--stream",
        "german",
        "--learner",
        "Perceptron",
    )
    reproduced(*options, "--data", data)
    (tmp_path / "libsvm").mkdir()
    with np.load(data / "libsvm" / "german.npz") as arrays:
        np.savez(tmp_path / "libsvm" / "german.npz", X=arrays["X"], y=-arrays["y"])
    (row,) = reproduced(*options, "--data", tmp_path)["rows"]
    assert row["runs"] == 1
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 2


def test_libsvms_text_serves_as_well(data: Path, tmp_path: Path) -> None:
    (tmp_path / "libsvm").mkdir()
    with np.load(data / "libsvm" / "german.npz") as arrays:
        rows = zip(arrays["X"].tolist(), arrays["y"].tolist(), strict=True)
        text = "\n".join(f"{y:+d} 1:{a!r} 2:{b!r}" for (a, b), y in rows)
    (tmp_path / "libsvm" / "german").write_text(text + "\n")
    binary, read = DataFolder(data).labelled("german").read(), DataFolder(tmp_path).labelled("german").read()
    np.testing.assert_array_equal(read.X, binary.X)
    np.testing.assert_array_equal(read.y, binary.y)


def test_a_set_that_is_not_there_is_named_with_what_to_get(tmp_path: Path) -> None:
    result = run("table2", "--data", tmp_path, "--out", tmp_path / "out")
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 6
    assert f"{tmp_path / 'libsvm' / 'german.npz'}: no such file" in str(result.exception)
    assert "german.numer" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_plays_that_are_not_there_are_named_with_what_to_get(tmp_path: Path) -> None:
    error = run("figure2", "--data", tmp_path, "--out", tmp_path / "out").exception
    assert isinstance(error, DataError)
    assert f"{tmp_path / 'kuairec' / 'small_matrix.csv'}: no such file. Get KuaiRec 2.0" in str(error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stream", "iris"), "--stream iris: unknown name; this experiment has german, "),
        (("--stream", "german", "--learner", "Oracle"), "--learner Oracle: unknown name"),
    ],
)
def test_a_name_that_is_not_there_is_refused(
    options: tuple[str, ...], message: str, data: Path, tmp_path: Path
) -> None:
    error = run("table2", "--data", data, "--out", tmp_path, *options).exception
    assert isinstance(error, ConfigError)
    assert message in str(error)


def test_a_file_that_holds_no_results_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("mistakes,many\n")
    error = run("table2", "--data", data, "--out", tmp_path, "--stream", "german").exception
    assert isinstance(error, DataError)
    assert "results.jsonl, line 1: not a result" in str(error)


def test_the_findings_page_is_made_of_what_was_run(data: Path, tmp_path: Path) -> None:
    only = [*german("FORKS"), "--learner", "NOGD"]
    rows = reproduced("table2", "--runs", 2, "--data", data, "--out", tmp_path, *only)["rows"]
    reproduced("graphs", "--runs", 2, "--data", data, "--out", tmp_path, "--stream", "coauthor")
    page = run("findings", "--out", tmp_path).stdout
    assert "`python -m research table2 --runs 2 --stream german --learner 'FORKS' --learner 'NOGD'`" in page
    assert f"| FORKS | 50 | 26.43 ± 0.56 | {rows[1]['mistakes_authors']:.2f} ± " in page
    assert "| majority class |  |  |  | 25.00 |  |" in page
    assert "| coauthor | B | paper | from the first | asked for | seconds |" in page
    assert "Table 3" not in page
    claims = json.loads(run("findings", "--out", tmp_path, "--json").stdout.splitlines()[-1])["rows"]
    assert {claim["experiment"] for claim in claims} == {"table2", "graphs"}
    for claim in claims:
        assert f"| {'yes' if claim['holds'] else '**no**'} | {claim['claim']} | {claim['numbers']} |" in page


def test_the_page_shows_what_was_tried_by_learner(data: Path, tmp_path: Path) -> None:
    only = ["--stream", "german", "--stream", "german-1", "--learner", "NOGD"]
    found = reproduced("tried", "--data", data, "--out", tmp_path, *only)
    assert found["runs"] == 5
    rows = [row for row in found["rows"] if row["stream"] == "german-1" and row["change"] == "B = 100"]
    assert [(row["budget"], row["width"], row["paper"]) for row in rows] == [(100, 50.0, 28.103)]
    page = run("findings", "--out", tmp_path).stdout
    lines = [line.split(" | ") for line in page.splitlines()]
    heading, *_ = (line for line in lines if line[0] == "| NOGD")
    assert heading[1:4] == ["paper", "as it is", "buffer of 2 B"]
    (line,) = (line for line in lines if line[0] == "| german-1")
    counted = f"{rows[0]['mistakes_authors']:.2f}"
    assert line[heading.index("B = 100")] in {counted, f"**{counted}**"}
    assert line[heading.index("rank 0.2 B")] == ""
    assert page.count("| NOGD | paper") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "has no results; run `python -m research table2"), ("{}", "table2.json: has no rows")],
)
def test_findings_of_nothing_say_what_to_run(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "table2.json").write_text(content)
    error = run("findings", "--out", tmp_path).exception
    assert isinstance(error, DataError)
    assert message in str(error)
