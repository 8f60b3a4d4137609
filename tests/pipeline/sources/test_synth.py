from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import ConfigError
from pipeline.features.tables import Tables
from pipeline.sources.kuairec import read_events
from pipeline.sources.synth.files import KUAIREC_FILES, write_files
from pipeline.sources.synth.size import Size
from pipeline.sources.synth.world import World

SMALL = Size(events=4_000, users=60, videos=200, days=3, seed=7)
WATCHED = 0.75


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synth")
    write_files(folder, SMALL)
    return folder


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_files(folder, Size())
    return folder


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_files(tmp_path, SMALL)
    assert sorted(file.name for file in tmp_path.glob("[!.]*")) == sorted(KUAIREC_FILES)
    for name in KUAIREC_FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_another_seed_gives_other_data(folder: Path, tmp_path: Path) -> None:
    write_files(tmp_path, Size(events=4_000, users=60, videos=200, days=3, seed=8))
    for name in KUAIREC_FILES:
        assert (tmp_path / name).read_bytes() != (folder / name).read_bytes()


def test_a_world_moves_as_fast_as_asked_for() -> None:
    worlds = [World(Size(events=1, users=9, videos=20, days=3, drift=drift)) for drift in (0.0, 1.0, 4.0)]
    still, usual, fast = (np.diff(world.videos.quality, axis=0) for world in worlds)
    assert (still == 0.0).all()
    assert fast == pytest.approx(4.0 * usual)
    assert worlds[2].users.rotation == pytest.approx(4.0 * worlds[1].users.rotation)
    assert worlds[2].users.bias.tolist() == worlds[1].users.bias.tolist()


def test_headers_are_those_of_the_originals(folder: Path, kuairec: Path) -> None:
    for name in KUAIREC_FILES:
        with (folder / name).open() as ours, (kuairec / name).open() as theirs:
            assert ours.readline() == theirs.readline()


def test_categories_of_users_are_those_of_the_originals(demo: Path, kuairec: Path) -> None:
    ours, theirs = (pl.read_csv(folder / "user_features.csv") for folder in (demo, kuairec))
    for name in ("user_active_degree", *(column for column in ours.columns if column.endswith("_range"))):
        assert set(ours[name]) <= set(theirs[name])


def test_there_are_as_many_rows_as_asked_for(folder: Path) -> None:
    heights = {name: pl.read_csv(folder / name).height for name in KUAIREC_FILES}
    assert heights == {
        "small_matrix.csv": 4_000,
        "user_features.csv": 60,
        "item_categories.csv": 200,
        "item_daily_features.csv": 600,
    }


def test_the_tables_load_as_feature_blocks(folder: Path) -> None:
    tables = Tables(
        folder / "user_features.csv", folder / "item_categories.csv", folder / "item_daily_features.csv"
    )
    assert tables.users is not None
    assert tables.tags is not None
    assert tables.daily is not None
    second_day = 1_593_878_400_000 + 86_400_000
    assert tables.users.block(0).any()
    assert tables.tags.block(0).any()
    assert tables.daily.block(0, second_day).any()


def test_every_row_is_usable_but_those_that_lack_their_time(demo: Path) -> None:
    events = read_events(demo)
    assert set(events.skipped) == {"no_timestamp"}
    assert events.skipped["no_timestamp"] / events.rows == pytest.approx(0.038, abs=0.005)


def test_watch_ratios_are_spread_like_those_of_kuairec(demo: Path) -> None:
    ratio = read_events(demo).frame["watch_ratio"]
    # Of 70,301 real rows: 0.18, 0.47, 0.78, 1.14, 1.58.
    expected = {0.1: 0.2, 0.25: 0.43, 0.5: 0.77, 0.75: 1.18, 0.9: 1.6}
    assert {q: ratio.quantile(q) for q in expected} == pytest.approx(expected, abs=0.1)
    assert ratio.quantile(0.999) > 8  # type: ignore[operator]  # not None, for the column is not empty


def test_delays_of_labels_reach_from_seconds_to_hours(demo: Path) -> None:
    frame = read_events(demo).frame
    seconds = (frame["label_timestamp"] - frame["timestamp"]) / 1000
    assert seconds.quantile(0.1) < 3  # type: ignore[operator]  # not None, as above
    assert seconds.quantile(0.99) > 100  # type: ignore[operator]  # as above
    assert seconds.max() > 3_600 / 2  # type: ignore[operator]  # as above


def test_a_user_watches_one_video_after_the_other_within_a_session(demo: Path) -> None:
    frame = read_events(demo).frame.sort("user_id", "timestamp")
    ended = pl.col("label_timestamp").shift().over("user_id")
    overlapping = frame.select((pl.col("timestamp") < ended).mean()).item()
    assert overlapping < 0.1


def test_nights_are_quieter_than_evenings(demo: Path) -> None:
    hours = pl.from_epoch(read_events(demo).frame["timestamp"] + 8 * 3_600_000, time_unit="ms").dt.hour()
    assert (hours == 21).sum() > 4 * (hours == 3).sum()


def test_a_few_videos_make_up_much_of_what_is_watched(demo: Path) -> None:
    plays = read_events(demo).frame["video_id"].value_counts()["count"].sort(descending=True).to_list()
    assert sum(plays[:200]) > 0.4 * sum(plays)


def test_there_is_something_to_learn_and_something_left_to_chance(demo: Path) -> None:
    """The smoothed means of user and video, known at once, against the majority so far."""
    frame = read_events(demo).frame
    seen: defaultdict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    everyone = [0.5, 1.0]
    mistakes = majority_mistakes = 0
    for user, video, ratio in frame.select("user_id", "video_id", "watch_ratio").rows():
        watched = ratio > WATCHED
        prior = everyone[0] / everyone[1]
        of_user, of_video = seen["user", user], seen["video", video]
        means = [(total + 10 * prior) / (count + 10) for total, count in (of_user, of_video)]
        mistakes += (sum(means) - prior > 0.5) != watched
        majority_mistakes += (prior > 0.5) != watched
        for totals in (of_user, of_video, everyone):
            totals[0] += watched
            totals[1] += 1
    assert 0.25 < mistakes / len(frame) < 0.30
    assert 0.45 < majority_mistakes / len(frame) < 0.51


def test_files_that_are_there_are_not_replaced_unless_forced(folder: Path) -> None:
    before = (folder / "small_matrix.csv").stat().st_mtime_ns
    with pytest.raises(ConfigError, match=r"already has .*small_matrix\.csv; give another --out, or --force"):
        write_files(folder, SMALL)
    assert (folder / "small_matrix.csv").stat().st_mtime_ns == before
    assert write_files(folder, SMALL, force=True)["small_matrix.csv"] == 4_000


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/data cannot be written to: Not a directory"):
        write_files(tmp_path / "file" / "data", SMALL)


@pytest.mark.parametrize("size", [Size(1, 1, 1, 1), Size(1, 50, 3, 1), Size(500, 1, 1, 40)])
def test_the_smallest_sizes_work(size: Size, tmp_path: Path) -> None:
    assert write_files(tmp_path, size)["small_matrix.csv"] == size.events


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    sizes = ["--events", "50", "--users", "5", "--videos", "9", "--days", "2"]
    result = CliRunner().invoke(app, ["synth", "--out", str(tmp_path), *sizes, "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["item_daily_features.csv"] == 18


SIZES = ["--events", "50", "--users", "5", "--videos", "9", "--days", "2"]


def synth(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["synth", "--out", str(folder), *SIZES, *options])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_keep_leaves_data_that_are_there_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "small_matrix.csv").write_text("mine")
    result = synth(tmp_path, "--keep")
    assert result.exit_code == 0
    assert "nothing is written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small_matrix.csv"]
    assert synth(tmp_path, "--keep", "--force").exit_code == 2
    assert contents(tmp_path) == {"small_matrix.csv": b"mine"}


@pytest.mark.parametrize("stream", ["kuairec", "deliveries"])
def test_what_was_written_is_replaced_when_forced_and_kept_else(tmp_path: Path, stream: str) -> None:
    options = ["--stream", stream]
    assert synth(tmp_path, *options, "--keep").exit_code == 0
    first = contents(tmp_path)
    assert synth(tmp_path, *options, "--keep", "--seed", "9").exit_code == 0
    assert contents(tmp_path) == first
    assert isinstance(synth(tmp_path, *options).exception, ConfigError)
    assert synth(tmp_path, *options, "--force", "--seed", "9").exit_code == 0
    assert contents(tmp_path) != first
    assert synth(tmp_path, *options, "--force").exit_code == 0
    assert contents(tmp_path) == first


@pytest.mark.parametrize("options", [["--force"], ["--keep"], []])
@pytest.mark.parametrize("name", ["small_matrix.csv", "user_features.csv"])
@pytest.mark.parametrize("how", ["changed", "copied there", "a folder", "a link that leads nowhere"])
def test_a_file_of_somebody_else_is_never_replaced(
    tmp_path: Path, options: list[str], name: str, how: str
) -> None:
    if how == "changed":
        assert synth(tmp_path).exit_code == 0
        with (tmp_path / name).open("a") as file:
            file.write("one,more\n")
    elif how == "copied there":
        (tmp_path / name).write_text("mine")
    elif how == "a folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    before = sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    result = synth(tmp_path, *options)
    assert sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    if options == ["--keep"]:
        assert result.exit_code == 0
    else:
        assert isinstance(result.exception, ConfigError)
    if options == ["--force"]:
        assert f"has {name}, which forks synth did not write" in str(result.exception)


def test_keep_completes_what_a_killed_run_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert synth(tmp_path / "whole").exit_code == 0
    replace = Path.replace

    def killed(path: Path, target: Path) -> Path:
        if target.name == "item_daily_features.csv":
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    assert synth(tmp_path / "half", "--keep").exit_code != 0
    assert contents(tmp_path / "half").keys() == {"user_features.csv", "item_categories.csv"}
    monkeypatch.undo()
    assert synth(tmp_path / "half", "--keep").exit_code == 0
    assert contents(tmp_path / "half") == contents(tmp_path / "whole")
