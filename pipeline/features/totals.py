"""The arithmetic of the running statistics, compiled: sums over labels, and the features made of them.

Totals are rows of three sums over labels: their number, the number of positive ones, and their watch ratios.
The rows of users form a ring in the order of their updates, and so do those of videos: the next row to be
evicted is the oldest of its ring. Compiled functions work on one event at a time, in a fixed order of
operations, so that an event's features have the same bits whether it is processed alone or among many. `run`
releases Python's global lock.

Numba's cache on disk sees changes of a function's own file alone, so nothing here depends on another file.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Block: TypeAlias = tuple[float, float, float, float]

PRIOR_WEIGHT = 10.0
"""The weight of the prior mean in an entity's means, in events."""

DECIMALS = 6
"""Decimals that features are rounded to."""
_UNIT = 10.0**DECIMALS

EVENTS, LABELS, RATIOS = range(3)
"""The columns of totals."""

OLDER, NEWER = range(2)
"""The columns of a ring of rows."""

NO_ROW = 0
"""The row of an unknown entity. In a ring, it stands between the newest row and the oldest."""

UNLINKED = -1
"""The value in place of a row's older neighbour, while the row is not in its ring."""


@njit(cache=True)
def features(
    user: int,
    video: int,
    tag_list: int,
    users: Floats,
    videos: Floats,
    tags: Floats,
    everything: Floats,
    packed: Integers,
) -> tuple[float, float, float, float, float, float, float, float, float, float]:
    """Return the running features of a user and a video.

    They are in the order of `pipeline.features.statistics.FEATURES`. Each is rounded to `DECIMALS`: further
    decimals help no prediction, and are a fifth of the bytes of a record.

    Parameters
    ----------
    user, video
        The rows of their totals.
    tag_list
        The position of the video's list in `packed`.
    users, videos, tags, everything
        Totals, shapes (rows, 3), float64; `everything` has one row.
    packed
        The lists of tags: see `pipeline.features.tags.TagLists`.
    """
    label_prior = (everything[0, LABELS] + 0.5) / (everything[0, EVENTS] + 1.0)
    ratio_prior = (everything[0, RATIOS] + 0.5) / (everything[0, EVENTS] + 1.0)
    user_mean, user_logit, user_ratio, user_count = _block(users, user, label_prior, ratio_prior)
    video_mean, video_logit, video_ratio, video_count = _block(videos, video, label_prior, ratio_prior)
    tag_mean, tag_ratio = _tag_means(tag_list, tags, packed, label_prior, ratio_prior)
    return (
        _rounded(user_mean),
        _rounded(user_logit),
        _rounded(user_ratio),
        _rounded(user_count),
        _rounded(video_mean),
        _rounded(video_logit),
        _rounded(video_ratio),
        _rounded(video_count),
        _rounded(_smoothed(videos[video, LABELS], videos[video, EVENTS], tag_mean)),
        _rounded(_smoothed(videos[video, RATIOS], videos[video, EVENTS], tag_ratio)),
    )


@njit(cache=True)
def add_label(
    user: int,
    video: int,
    tag_list: int,
    label: bool,
    ratio: float,
    users: Floats,
    user_ring: Integers,
    user_capacity: int,
    videos: Floats,
    video_ring: Integers,
    video_capacity: int,
    tags: Floats,
    everything: Floats,
    packed: Integers,
) -> tuple[int, int]:
    """Count a label.

    Returns
    -------
    tuple of int
        The rows of the user and of the video that were evicted for it, or `NO_ROW`.
    """
    evicted_user = _touch(users, user_ring, user, user_capacity)
    evicted_video = _touch(videos, video_ring, video, video_capacity)
    _add(users, user, label, ratio)
    _add(videos, video, label, ratio)
    for position in range(tag_list + 1, tag_list + 1 + packed[tag_list]):
        _add(tags, packed[position], label, ratio)
    _add(everything, 0, label, ratio)
    return evicted_user, evicted_video


@njit(cache=True, nogil=True)
def run(
    order: Integers,
    user_rows: Integers,
    video_rows: Integers,
    tag_lists: Integers,
    labels: Booleans,
    ratios: Floats,
    users: Floats,
    user_ring: Integers,
    user_capacity: int,
    videos: Floats,
    video_ring: Integers,
    video_capacity: int,
    tags: Floats,
    everything: Floats,
    packed: Integers,
    out: Floats,
    evicted: Integers,
) -> None:
    """Run the steps of `order`: i writes event i's features to `out`, n + i counts its label.

    Rows, tag lists, labels, ratios and `out` are those of n events. The rows of the user and of the video
    that a step evicts are written to `evicted`, shape (2, steps). A later step may use such a row again.
    """
    n = out.shape[0]
    for step in range(order.shape[0]):
        event = order[step]
        if event < n:
            found = features(
                user_rows[event],
                video_rows[event],
                tag_lists[event],
                users,
                videos,
                tags,
                everything,
                packed,
            )
            for j in range(len(found)):
                out[event, j] = found[j]
            continue
        event -= n
        user, video = user_rows[event], video_rows[event]
        new_user, new_video = user_ring[user, OLDER] == UNLINKED, video_ring[video, OLDER] == UNLINKED
        evicted_user, evicted_video = add_label(
            user,
            video,
            tag_lists[event],
            labels[event],
            ratios[event],
            users,
            user_ring,
            user_capacity,
            videos,
            video_ring,
            video_capacity,
            tags,
            everything,
            packed,
        )
        user_capacity -= new_user and evicted_user == NO_ROW
        video_capacity -= new_video and evicted_video == NO_ROW
        evicted[0, step], evicted[1, step] = evicted_user, evicted_video


@njit(cache=True, nogil=True)
def merge_shared(
    video_rows: Integers,
    tag_lists: Integers,
    sums: Floats,
    videos: Floats,
    video_ring: Integers,
    video_capacity: int,
    tags: Floats,
    everything: Floats,
    packed: Integers,
    evicted: Integers,
) -> None:
    """Add sums over labels, shape (n, 3), to the totals of their videos, tags and everything.

    The row of a video that is evicted for one of them is written to `evicted`, shape (n,).
    """
    for number in range(video_rows.shape[0]):
        video, tag_list = video_rows[number], tag_lists[number]
        new = video_ring[video, OLDER] == UNLINKED
        evicted_row = _touch(videos, video_ring, video, video_capacity)
        video_capacity -= new and evicted_row == NO_ROW
        evicted[number] = evicted_row
        for column in range(sums.shape[1]):
            amount = sums[number, column]
            videos[video, column] += amount
            for tag in packed[tag_list + 1 : tag_list + 1 + packed[tag_list]]:
                tags[tag, column] += amount
            everything[0, column] += amount


@njit(cache=True)
def _touch(totals: Floats, ring: Integers, row: int, capacity: int) -> int:
    """Make a row the newest of its ring; return the row that is evicted for it, or `NO_ROW`."""
    evicted = NO_ROW
    if ring[row, OLDER] != UNLINKED:
        _unlink(ring, row)
    elif capacity == 0:
        evicted = ring[NO_ROW, NEWER]
        _unlink(ring, evicted)
        ring[evicted, OLDER] = UNLINKED
        for column in range(totals.shape[1]):
            totals[evicted, column] = 0.0
    newest = ring[NO_ROW, OLDER]
    ring[newest, NEWER] = row
    ring[row, OLDER] = newest
    ring[row, NEWER] = NO_ROW
    ring[NO_ROW, OLDER] = row
    return evicted


@njit(cache=True)
def _unlink(ring: Integers, row: int) -> None:
    older, newer = ring[row, OLDER], ring[row, NEWER]
    ring[older, NEWER] = newer
    ring[newer, OLDER] = older


@njit(cache=True)
def _add(totals: Floats, row: int, label: bool, ratio: float) -> None:
    totals[row, EVENTS] += 1.0
    totals[row, LABELS] += label
    totals[row, RATIOS] += ratio


@njit(cache=True)
def _tag_means(
    tag_list: int, tags: Floats, packed: Integers, label_prior: float, ratio_prior: float
) -> tuple[float, float]:
    """Return the label and ratio means of the tags in a list; the priors where they have no events."""
    events = labels = ratios = 0.0
    for position in range(tag_list + 1, tag_list + 1 + packed[tag_list]):
        tag = packed[position]
        events += tags[tag, EVENTS]
        labels += tags[tag, LABELS]
        ratios += tags[tag, RATIOS]
    if events == 0.0:  # 10 p / 10 need not be p
        return label_prior, ratio_prior
    return _smoothed(labels, events, label_prior), _smoothed(ratios, events, ratio_prior)


@njit(cache=True)
def _block(totals: Floats, row: int, label_prior: float, ratio_prior: float) -> Block:
    """Return an entity's label mean, its logit, ratio mean and log count."""
    events = totals[row, EVENTS]
    mean = _smoothed(totals[row, LABELS], events, label_prior)
    ratio = _smoothed(totals[row, RATIOS], events, ratio_prior)
    return mean, math.log(mean / (1.0 - mean)), ratio, math.log1p(events)


@njit(cache=True)
def _smoothed(total: float, events: float, prior: float) -> float:
    """Return the mean over so many events, and over `PRIOR_WEIGHT` more that are at the prior."""
    return (total + PRIOR_WEIGHT * prior) / (events + PRIOR_WEIGHT)


@njit(cache=True)
def _rounded(value: float) -> float:
    """Return the nearest number of `DECIMALS`, whose shortest text has no more of them."""
    return float(np.rint(value * _UNIT) / _UNIT)
