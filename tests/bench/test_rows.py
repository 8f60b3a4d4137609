from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.rows import WATCHED, Rows, halves, kuairand, kuairec, kuairec_of_one_user
from pipeline.features.tags import TagLists

HEADER = "user_id,video_id,time_ms,is_click,long_view,label,play_time_ms,duration_ms"
DAY = 86_400_000


def test_halves_share_no_user_and_miss_none() -> None:
    users = np.array([3, 1, 3, 2, 9, 9, 4])
    first, second = halves(users)
    assert sorted([*first, *second]) == list(range(7))
    assert not set(users[first]) & set(users[second])
    assert {len(set(users[half])) for half in (first, second)} == {2, 3}


def test_the_own_target_of_kuairand_needs_a_length(tmp_path: Path) -> None:
    plays = [(100, 100), (50, 100), (10, 0), (90, 100)]
    rows = [f"1,{i},{i * 5 * DAY},0,1,1,{play},{length}" for i, (play, length) in enumerate(plays)]
    (tmp_path / "log.csv").write_text("\n".join([HEADER, *reversed(rows)]) + "\n")
    weeks = kuairand(tmp_path, WATCHED)
    assert weeks.rows.ratios.tolist() == [1.0, 0.5, 0.9]
    assert weeks.rows.positive.tolist() == [True, False, True]
    assert weeks.second == 2
    assert kuairand(tmp_path, "is_click").rows.positive.tolist() == [False] * 4


def test_rows_of_another_file_may_follow(folder: Path) -> None:
    (folder / "big_matrix_1000.csv").write_bytes((folder / "small_matrix.csv").read_bytes())
    rows, later = kuairec(folder), kuairec_of_one_user(folder)
    both = rows.followed_by(later.taken(np.array([3, 1])))
    assert len(both.users) == 14
    assert both.videos[-2:].tolist() == [later.videos[3], later.videos[1]]
    np.testing.assert_array_equal(both.of_use()[:12], rows.of_use())


def test_without_tags_a_new_video_is_like_any_other() -> None:
    rows = Rows(np.array([1, 1]), np.array([5, 6]), np.array([2.0, 2.0]), TagLists({5: [0], 6: [0]}))
    tagged, untagged = (each.of_use()[1] for each in (rows, rows.without_tags()))
    assert tagged[5] > 0.0 == untagged[5]  # the video's effect
