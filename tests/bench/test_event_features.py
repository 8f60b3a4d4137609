from __future__ import annotations

import numpy as np
import polars as pl

from bench.event_features import DAY, by_length, of_event, sessions

HOUR = 3_600_000


def test_a_session_ends_with_half_an_hour_of_silence() -> None:
    since, position = sessions([1, 2, 1, 1], [0, 5, 7_000, 9_000_000])
    assert np.expm1(since[:, 0]).round().tolist() == [86_400.0, 86_400.0, 7.0, 8_993.0]
    assert np.exp(position[:, 0]).round().tolist() == [1.0, 1.0, 2.0, 1.0]


def test_hours_are_those_of_china_and_midnight_is_no_border() -> None:
    frame = pl.DataFrame(
        {
            "time_ms": [16 * HOUR, 22 * HOUR, DAY + 16 * HOUR],
            "user_id": [1, 2, 3],
            "video_id": [4, 5, 4],
            "duration_ms": [0, 9000, 0],
        }
    )
    found = of_event(frame)
    np.testing.assert_allclose(found["hour of the day"], [[0, 1], [1, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(
        found["length of the video"], [[np.log(1000), 1], [np.log(9000), 0], [np.log(1000), 1]]
    )


def test_lengths_are_tags_by_powers_of_two() -> None:
    frame = pl.DataFrame({"video_id": [1, 2, 3, 4], "duration_ms": [0, 7_900, 4_000, 8_000]})
    lists = by_length(frame)
    tags = [lists.packed[lists.find(video) + 1] for video in (1, 2, 3, 4)]
    assert tags == [0, 3, 3, 4]
