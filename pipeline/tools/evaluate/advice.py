"""What an evaluation finds beside its figures: faults of a table or of settings, each with what to try."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Group
from rich.text import Text

from forks import ForksSettings
from forks.arrays import FloatArray, IntArray
from forks.validation import auc
from pipeline.tools.stream.leaks import tells
from pipeline.tools.times import instant

ENOUGH: Final = 100
"""Labelled events from which on shares and losses are looked at."""
NEW: Final = 2_000
"""Labelled events up to which a model may be worse than a constant because it is new."""
BLOCKS: Final = 32
"""Blocks of events whose losses are compared, so that neighbours may depend on each other."""
SURE: Final = 3.0
"""Standard errors from which on a loss is higher."""
EARLY: Final = 0.1
"""Share of the events from which on a loss that turns has turned later than at the start."""
RARE: Final = 0.05
"""Share of a class below which mistakes say little."""
HELD: Final = 0.5
"""Share of labels that wait for events of the same time, from which on they matter."""
LEAK: Final = 0.99
"""Correlation with the label from which on a feature tells it."""
TOO_GOOD: Final = 0.999
"""Area under the ROC curve from which on features are suspected."""
SAMPLE: Final = 5_000
"""Rows in which features are compared with the label, at most."""
STRONGER: Final = 10.0
"""Factor by which more weights are held near zero, where a learner learns too much from noise."""
SHORTER: Final = 5.0
"""Factor by which less is remembered, where a stream has changed."""


class Advice(msgspec.Struct, frozen=True):
    """Something to look at."""

    name: str
    seen: str
    """What was seen, as a sentence."""
    field: str | None
    """The setting, or the feature, that it is about; None for the learner as a whole."""
    remedy: str
    """A command or a setting to try."""


class Labelled(NamedTuple):
    """Labelled events in the order of their predictions."""

    label: str
    """What the label is called."""
    setting: str
    """What says where it is: a setting, or an option."""
    numbers: IntArray
    """Number of each event, from 1, shape (n,)."""
    times: IntArray | None
    """Its time in milliseconds, shape (n,); None without times."""
    scores: FloatArray
    """Its score, or the number that is predicted, shape (n,)."""
    values: FloatArray
    """Value of its label, shape (n,)."""
    positive: NDArray[np.bool_] | None
    """Whether it is of the positive class, shape (n,); None where numbers are predicted."""
    mean: FloatArray
    """The running mean of the labels known when it was predicted, shape (n,): of classes, the share of the
    positive one, between 0 and 1."""
    log_odds: bool
    """Whether scores are log-odds."""


class Losses(NamedTuple):
    """Loss of each event, shape (n,)."""

    name: str
    model: FloatArray
    constant: FloatArray
    """That of the running mean, the best constant so far."""


class Attempt(NamedTuple):
    """What was run."""

    command: str
    """The command, without --json."""
    learner: ForksSettings


def losses_of(events: Labelled) -> Losses:
    """Return the log loss, mistakes where scores are no log-odds, or the squared errors of numbers."""
    scores, positive, mean = events.scores, events.positive, events.mean
    if positive is None:
        return Losses("squared error", (scores - events.values) ** 2, (mean - events.values) ** 2)
    if events.log_odds:
        own = np.logaddexp(0.0, np.where(positive, -scores, scores))
        return Losses("log loss", own, -np.log(np.where(positive, mean, 1.0 - mean)))
    wrong = ((scores > 0.0) != positive).astype(np.float64)
    return Losses("share of mistakes", wrong, ((mean > 0.5) != positive).astype(np.float64))


def advise(events: Labelled, attempt: Attempt) -> Iterator[Advice]:
    """Yield what labels and predictions show.

    Parameters
    ----------
    events
        The events.
    attempt
        What was run.
    """
    if (constant := _constant_label(events)) is not None:
        yield constant
    elif len(events.values) >= ENOUGH:
        losses = losses_of(events)
        found = (
            _worse_than_constant(events, losses, attempt),
            _rare_class(events, losses, attempt),
            _too_good(events),
        )
        yield from (each for each in found if each is not None)


def _too_good(events: Labelled) -> Advice | None:
    """Find out whether classes are told apart so well that features must know the label."""
    area = None if events.positive is None else auc(events.scores, events.positive)
    if area is None or area < TOO_GOOD:
        return None
    seen = f"the AUC is {area:.4f}: a feature, or several together, may tell the label"
    return Advice("too_good", seen, "features", "leave features out that are known later")


def _constant_label(events: Labelled) -> Advice | None:
    """Find out whether there is one class only, or one number."""
    values, positive, setting = events.values, events.positive, events.setting
    if len(values) < 2:
        return None
    low, high = float(values.min()), float(values.max())
    remedy = f"name labels that differ with {setting}"
    labels = f"all {len(values):,} labels of {events.label}"
    if positive is None:
        seen = f"{labels} are {low:g}"
        return None if low < high else Advice("constant_label", seen, setting, remedy)
    if positive.any() != positive.all():
        return None
    labels += f" are {'positive' if positive[0] else 'negative'}"
    if low == high:
        return Advice("constant_label", labels, setting, remedy)
    remedy = f"set target.above to a number from {low:g} up to {high:g}"
    return Advice("constant_label", f"{labels}, from {low:g} to {high:g}", "target.above", remedy)


def _worse_than_constant(events: Labelled, losses: Losses, attempt: Attempt) -> Advice | None:
    """Find out whether the model's loss is higher than that of the best constant so far, and since when.

    The sum of the differences is at its least where the model turned worse for good. The standard error is
    that of differences between neighbouring blocks, which such a turn does not raise.
    """
    count = len(losses.model)
    if count < NEW:
        return None
    sums = np.concatenate([[0.0], np.cumsum(losses.model - losses.constant)])
    turn = int(np.argmin(sums))
    surplus = float(sums[-1] - sums[turn])
    blocks = np.diff(sums[np.linspace(0, count, BLOCKS + 1).astype(np.int64)])
    error = math.sqrt(BLOCKS * float(np.mean(np.diff(blocks) ** 2)) / 2.0)
    if surplus <= SURE * error:
        return None
    later, error_later = count - turn, error * math.sqrt((count - turn) / count)
    since = f"event {events.numbers[turn]:,}"
    if events.times is not None:
        since += f", {instant(int(events.times[turn]))},"
    seen = (
        f"from {since} on, the {losses.name} is {losses.model[turn:].mean():#.4g}, that of the running mean "
        f"{losses.constant[turn:].mean():#.4g}: {surplus / later:#.2g} ± {error_later / later:#.2g} more"
    )
    return Advice("worse_than_constant", seen, None, _other_settings(attempt, late=turn > EARLY * count))


def _other_settings(attempt: Attempt, *, late: bool) -> str:
    """Return a command that may do better: forget faster what has changed, or else learn less from noise."""
    learner = attempt.learner
    if not learner.sum_kernel:
        return f"{attempt.command} --preset practical"
    if late and math.isfinite(learner.memory):
        return f"{attempt.command} --set memory={learner.memory / SHORTER:g}"
    return f"{attempt.command} --set linear_alpha={learner.linear_precision * STRONGER:g}"


def _rare_class(events: Labelled, losses: Losses, attempt: Attempt) -> Advice | None:
    """Find out whether one of two classes is rare."""
    positive = events.positive
    if positive is None or RARE <= positive.mean() <= 1.0 - RARE:
        return None
    share, rare = float(positive.mean()), "positive"
    if share > RARE:
        share, rare = 1.0 - share, "negative"
    seen = (
        f"{share:.2%} of the labels are {rare}, and never to predict so makes no more mistakes than that: "
        f"look at the AUC, {auc(events.scores, positive):.4f}"
    )
    if not events.log_odds:
        return Advice("rare_class", f"{seen}, and a log loss", None, f"{attempt.command} --set loss=logistic")
    seen += f", and the log loss, {losses.model.mean():.4f} (running mean: {losses.constant.mean():.4f})"
    return Advice("rare_class", seen, None, f"{attempt.command} --json | jq '{{auc, log_loss}}'")


class Learned(NamedTuple):
    """When labels were learned, in the order of the predictions."""

    times: IntArray
    """Time of each event, ascending, shape (n,)."""
    label_times: IntArray
    """Time of its label, shape (n,)."""
    in_time: NDArray[np.bool_]
    """Whether its label was learned before the next event was predicted, shape (n,)."""


def tied_times(learned: Learned, command: str | None) -> Advice | None:
    """Find out whether labels wait for other events of the same time, which are predicted before.

    These are labels that come before the next time, but after the next event.

    Parameters
    ----------
    learned
        When labels were learned.
    command
        What was run, where the table has no times of labels; None where it has.
    """
    times, label_times, in_time = learned
    if len(times) < ENOUGH:
        return None
    different, counts = np.unique(times, return_counts=True)
    later = np.searchsorted(times, times, side="right")
    before_next = np.append(times, np.iinfo(np.int64).max)[later] >= label_times
    tied = later > np.arange(1, len(times) + 1)
    held = int(np.count_nonzero(tied & before_next & ~in_time))
    if held < HELD * len(times):
        return None
    learned_at_once = int(np.count_nonzero(in_time))
    seen = (
        f"{len(times):,} events have {len(different):,} different times, up to {counts.max():,} the same: "
        f"{learned_at_once:,} labels were learned before the next event, {held:,} after all of their time"
    )
    remedy = "point interactions.time to a field with finer times"
    if command is not None:
        remedy += f"; if labels are known before the next event: {command} --label-delay 0s"
    return Advice("tied_times", seen, "interactions.time", remedy)


def leaks(columns: Sequence[pl.Series], y: FloatArray, settings: str = "features.") -> Iterator[Advice]:
    """Yield the features that alone tell the label.

    Parameters
    ----------
    columns
        Features by name, each of shape (n,).
    y
        The labels, shape (n,): numbers, or 0 and 1 for two classes.
    settings
        What stands before a feature's name in settings.
    """
    rows = np.unique(np.linspace(0, max(len(y) - 1, 0), min(SAMPLE, len(y))).astype(np.int64))
    if len(rows) < ENOUGH:
        return
    for column in columns:
        if not column.dtype.is_nested() and (found := tells(column[rows], y[rows], LEAK)) is not None:
            seen = f"{column.name} alone tells the label ({found}): is it known when an event happens?"
            remedy = f"leave {settings}{column.name} out if it is known later"
            yield Advice("leak", seen, f"{settings}{column.name}", remedy)


def render_advice(found: Sequence[Advice]) -> Group:
    """Render advice for a terminal; nothing where nothing was seen."""
    if not found:
        return Group()
    lines = [Text(), Text("Look at", style="bold")]
    for each in found:
        lines += [Text(f"- {each.name.replace('_', ' ')}: {each.seen}"), Text(f"  try: {each.remedy}")]
    return Group(*lines)
