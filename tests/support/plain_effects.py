"""The adjusted effects, slow and plain: every sum is added up from all labels each time it is needed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipeline.features.effect_arrays import RING
from pipeline.features.effects import (
    FADE,
    FIRST_LABELS,
    GROUP_PRIOR,
    ITEM_PRIOR,
    LOGIT_SCALE,
    NOISE_STEPS,
    NOISE_WEIGHT,
    SOLVE_INTERVAL,
    USER_PRIOR,
)


@dataclass
class Label:
    """A label that is being learned, or was."""

    user: int
    item: int
    x: float
    residual: float
    """What the item's effect leaves of it: as of the newest solution over the ring, or as it came since."""
    number: int
    """How many labels its user had before."""
    fit: tuple[float, float] | None = None
    """Effect and noise of its user with which the item's sums count it; None until they do."""
    solved: tuple[float, float, float] | None = None
    """Effect, noise and variance of its user as of this label."""
    older: bool = False
    """Whether it has left the ring."""
    weight: float = 1.0
    """What it counts for, less with each label that has left the ring after it."""


class PlainEffects:
    """As `pipeline.features.effects`, from a list of all labels.

    Parameters
    ----------
    groups
        Each item's groups.
    """

    def __init__(self, groups: Sequence[Collection[int]]) -> None:
        self._groups = groups
        self.labels: list[Label] = []
        self._rests: list[tuple[int, float]] = []
        """Item and squared residual of each label that was learned."""

    @property
    def mean(self) -> float:
        """The mean signal."""
        learned = self.labels[: len(self._rests)]
        return sum(label.x for label in learned) / (len(learned) + 1)

    @property
    def mean_noise(self) -> float:
        """The mean squared residual."""
        return (sum(square for _, square in self._rests) + 0.5) / (len(self._rests) + 1)

    def sums(self, items: Collection[int]) -> tuple[float, float]:
        """Sums of (x - b) / s and of 1 / s over the labels of some items."""
        counted = [(label.x, *label.fit) for label in self.labels if label.fit and label.item in items]
        return sum((x - effect) / noise for x, effect, noise in counted), sum(1 / s for _, _, s in counted)

    def item(self, item: int) -> tuple[float, float]:
        """An item's effect and its variance."""
        groups = self._groups[item]
        mean, variance = 0.0, 0.0 if groups else GROUP_PRIOR
        for group in groups:
            residuals, precision = self.sums([v for v, own in enumerate(self._groups) if group in own])
            mean += residuals / (precision + 1 / GROUP_PRIOR) / len(groups)
            variance += 1 / (precision + 1 / GROUP_PRIOR) / len(groups) ** 2
        residuals, precision = self.sums([item])
        total = precision + 1 / ITEM_PRIOR
        share = 1 / ITEM_PRIOR / total
        return residuals / total + share * mean, 1 / total + share**2 * variance

    def user(self, user: int) -> tuple[float, float, float]:
        """Solve a user's effect, noise and variance of the effect."""
        own = [label for label in self.labels if label.user == user]
        residuals = [label.residual for label in own]
        weights = [label.weight for label in own]
        noise = next((label.solved[1] for label in reversed(own) if label.solved), self.mean_noise)
        for _ in range(NOISE_STEPS):
            effect, _ = self._posterior(residuals, weights, noise)
            rest = sum(w * (residual - effect) ** 2 for w, residual in zip(weights, residuals, strict=True))
            noise = (NOISE_WEIGHT * self.mean_noise + rest) / (NOISE_WEIGHT + sum(weights))
        effect, variance = self._posterior(residuals, weights, noise)
        return effect, noise, variance

    def _posterior(
        self, residuals: Sequence[float], weights: Sequence[float], noise: float
    ) -> tuple[float, float]:
        precision = sum(weights) / noise + 1 / USER_PRIOR
        total = sum(w * residual for w, residual in zip(weights, residuals, strict=True))
        return (total / noise + self.mean / USER_PRIOR) / precision, 1 / precision

    def features(self, user: int, item: int) -> list[float]:
        """The features of a user and an item."""
        own, noise, variance = self.mean, self.mean_noise, USER_PRIOR
        for label in self.labels:
            if label.user == user and label.solved:
                own, noise, variance = label.solved
        effect, item_variance = self.item(item)
        rests = [square for other, square in self._rests if other == item]
        item_noise = (NOISE_WEIGHT * self.mean_noise + sum(rests)) / (NOISE_WEIGHT + len(rests))
        logit = LOGIT_SCALE * (own + effect) / math.sqrt(noise + variance + item_variance)
        return [own, math.sqrt(noise), effect, math.sqrt(item_noise), logit]

    def learn(self, user: int, item: int, x: float) -> None:
        """Learn the signal of a label."""
        own = [label for label in self.labels if label.user == user]
        new = Label(user, item, x, x - self.item(item)[0], len(own))
        solves = new.number < FIRST_LABELS or new.number % SOLVE_INTERVAL == 0
        counted = [new]
        if solves:
            for label in own:
                if not label.older:
                    label.residual = label.x - self.item(label.item)[0]
                    if label.number < new.number + SOLVE_INTERVAL - RING:
                        self._leave_ring(label)
            counted += [label for label in own if not label.older]
        self.labels.append(new)
        effect, noise, _ = new.solved = self.user(user)
        fit = (effect, noise) if solves else own[-1].fit
        for label in counted:
            label.fit = fit
        self._rests.append((item, (new.residual - effect) ** 2))

    def _leave_ring(self, label: Label) -> None:
        for other in self.labels:
            if other.user == label.user and other.older:
                other.weight *= FADE
        label.older = True
