"""The arithmetic of the running statistics, compiled: sums over labels, and the features made of them.

Totals are rows of three sums over labels: how many there were, how many said watched, and their watch ratios.
Rows of users and videos form a ring each, in the order in which they were updated, so that the oldest is at
hand when it has to be forgotten. What is compiled here works on one event at a time, always in the same
order, so that an event's features have the same bits whether they were asked for alone or among many. `run`
lets other Python threads run meanwhile.

Numba's cache on disk knows a function by its own file only: nothing here depends on another one.
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
"""How many events of the average entity every entity starts with."""

DECIMALS = 6
"""Decimals of features."""
_UNIT = 10.0**DECIMALS

EVENTS, LABELS, RATIOS = range(3)
"""The columns of totals."""

OLDER, NEWER = range(2)
"""The columns of a ring of rows."""

NO_ROW = 0
"""The row of an entity that is not known. In a ring, it stands between the newest and the oldest."""

UNLINKED = -1
"""What is older than a row that is not in its ring."""


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
    """Give the running features of a user and a video, in the order of
    `pipeline.features.statistics.FEATURES`.

    Each is rounded to `DECIMALS`: what is behind them tells nothing, and was a fifth of the bytes written.

    Parameters
    ----------
    user, video
        Rows of their totals.
    tag_list
        Where the video's tags stand in `packed`.
    users, videos, tags, everything
        Totals, shapes (n, 3); `everything` has one row.
    packed
        See `pipeline.features.tags.TagLists`.
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
def count(
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
    """Count a label; give the rows of the user and the video that had to be forgotten for it, or `NO_ROW`."""
    gone_user = _touch(users, user_ring, user, user_capacity)
    gone_video = _touch(videos, video_ring, video, video_capacity)
    _add(users, user, label, ratio)
    _add(videos, video, label, ratio)
    for place in range(tag_list + 1, tag_list + 1 + packed[tag_list]):
        _add(tags, packed[place], label, ratio)
    _add(everything, 0, label, ratio)
    return gone_user, gone_video


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
    """Take the steps of `order`: i writes event i's features to `out`, n + i counts its label.

    Rows, tag lists, labels, ratios and `out` are those of n events. Where a user or a video had to be
    forgotten at a step, its row is written to `evicted`, shape (2, steps); it may be in use again later.
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
        gone_user, gone_video = count(
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
        user_capacity -= new_user and gone_user == NO_ROW
        video_capacity -= new_video and gone_video == NO_ROW
        evicted[0, step], evicted[1, step] = gone_user, gone_video


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
    """Add sums over labels that others have counted, shape (n, 3), to their videos, tags and everything.

    Where a video had to be forgotten for one, its row is written to `evicted`, shape (n,).
    """
    for place in range(video_rows.shape[0]):
        video, tag_list = video_rows[place], tag_lists[place]
        new = video_ring[video, OLDER] == UNLINKED
        gone = _touch(videos, video_ring, video, video_capacity)
        video_capacity -= new and gone == NO_ROW
        evicted[place] = gone
        for column in range(sums.shape[1]):
            amount = sums[place, column]
            videos[video, column] += amount
            for tag in packed[tag_list + 1 : tag_list + 1 + packed[tag_list]]:
                tags[tag, column] += amount
            everything[0, column] += amount


@njit(cache=True)
def _touch(totals: Floats, ring: Integers, row: int, capacity: int) -> int:
    """Make a row the newest of its ring; give the oldest one, if that had to go for it, or `NO_ROW`."""
    gone = NO_ROW
    if ring[row, OLDER] != UNLINKED:
        _unlink(ring, row)
    elif capacity == 0:
        gone = ring[NO_ROW, NEWER]
        _unlink(ring, gone)
        ring[gone, OLDER] = UNLINKED
        for column in range(totals.shape[1]):
            totals[gone, column] = 0.0
    newest = ring[NO_ROW, OLDER]
    ring[newest, NEWER] = row
    ring[row, OLDER] = newest
    ring[row, NEWER] = NO_ROW
    ring[NO_ROW, OLDER] = row
    return gone


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
    """Give the label and ratio means of the tags in a list; the priors themselves where nothing is known."""
    events = labels = ratios = 0.0
    for place in range(tag_list + 1, tag_list + 1 + packed[tag_list]):
        tag = packed[place]
        events += tags[tag, EVENTS]
        labels += tags[tag, LABELS]
        ratios += tags[tag, RATIOS]
    if events == 0.0:  # 10 p / 10 need not be p
        return label_prior, ratio_prior
    return _smoothed(labels, events, label_prior), _smoothed(ratios, events, ratio_prior)


@njit(cache=True)
def _block(totals: Floats, row: int, label_prior: float, ratio_prior: float) -> Block:
    """Give an entity's label mean, its logit, ratio mean and log count."""
    events = totals[row, EVENTS]
    mean = _smoothed(totals[row, LABELS], events, label_prior)
    ratio = _smoothed(totals[row, RATIOS], events, ratio_prior)
    return mean, math.log(mean / (1.0 - mean)), ratio, math.log1p(events)


@njit(cache=True)
def _smoothed(total: float, events: float, prior: float) -> float:
    """Give the mean of a total over so many events, and over `PRIOR_WEIGHT` more that are at the prior."""
    return (total + PRIOR_WEIGHT * prior) / (events + PRIOR_WEIGHT)


@njit(cache=True)
def _rounded(value: float) -> float:
    """Give the number of `DECIMALS` that is nearest, which is written with no more of them."""
    return float(np.rint(value * _UNIT) / _UNIT)
