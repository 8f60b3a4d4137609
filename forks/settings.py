"""The learner's settings, validated on creation, and the two presets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from forks.checks import LARGEST, LARGEST_UNSTANDARDIZED
from forks.losses import LossName

Columns: TypeAlias = tuple[int, int]
Hessian: TypeAlias = Literal["gradient", "curvature"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ForksSettings:
    """All settings that determine the results of a `Forks`.

    Start from a preset, `practical` or `paper`, and name the fields that differ.

    Attributes
    ----------
    dimension
        Number of columns of an input vector, >= 1.
    budget
        Number B of stored points at which stage 1 (KOGD) ends and the sketch begins, >= 2.
    sketch_size
        Number s_p of rows of the sketch, a multiple of ``blocks``.
    landmarks
        Number s_m of points that the feature map compares with, in [1, budget); less than the budget so that
        an evicted landmark always has a successor.
    rank
        Number k of features of the map, in [1, min(sketch_size, landmarks)].
    cycle
        Number rho of learned events from one change of the feature map to the next, >= 1.
    blocks
        Number d of non-zero entries in a row of the sparse Johnson-Lindenstrauss transform, >= 1.
    width
        Width of the Gaussian kernel exp(-|x - y|^2 / (2 width^2)), > 0.
    alpha
        The inverse Hessian of the kernel part, and of the linear part without ``linear_alpha``, starts at
        I / alpha; > 0.
    linear_alpha
        The same of the linear part, > 0; None for ``alpha``.
    offset_column
        Column that is added to the score as it is, within +-``clip``, such as the log-odds of another model;
        None for none. Parts that see the column learn what it leaves unexplained. Behind ``entity_blocks``.
    hessian
        Matrix that a step adds to the Hessian: ``gradient``, (sigma + eta) g g' as in the paper, or
        ``curvature``, the loss's second derivative times z z' (not for hinge, which has none).
    sigma, eta
        Weights of g g' with ``hessian = "gradient"``, >= 0.
    clip
        Bound C of the scores of stage 2 (Eq. 10), > 0. May be infinite, but not for squared loss with
        ``hessian = "gradient"``, which is sound only on bounded scores.
    step
        Step size of KOGD, > 0.
    decay
        Regularisation lambda of KOGD, >= 0, with step * decay < 1.
    loss
        Loss: ``logistic``, ``hinge``, ``squared_hinge`` (labels -1, +1) or ``squared`` (regression).
    sum_kernel
        Whether the score is the sum of a linear part with intercept and the kernel part.
    carry_over
        Whether weights and inverse Hessian are carried over to the next feature map; otherwise they are
        reset.
    memory
        With ``carry_over``, the number of learned events after which an event weighs 1/e in the Hessian, > 0;
        inf to forget nothing. Applied when the map changes.
    bounded
        Whether each new stored point evicts the oldest and cycles are shorter at first: 200 events or a
        twentieth of ``cycle``, whichever is less, or a twentieth of the events learned so far, if that is
        more. Otherwise the stored set grows by one point each cycle.
    standardize
        Whether columns are standardised with running moments. Without it, a linear part accepts only columns
        within +-1e6. Not for columns that are nearly always 0, such as words of a text: a rare value lies
        many deviations away and decides the score.
    refresh
        Number of changes of the map from one exact decomposition of the sketch to the next, >= 1; 0 for
        never.
    linear_columns, kernel_columns
        Bounds (start, stop) of the columns that the linear part and the kernel part see.
    entity_blocks
        Bounds (start, stop) of consecutive blocks of the kernel's first columns that depend only on an entity
        (a user, an item). They are never standardised, and the Gaussian kernel is computed as the product of
        its values on the blocks, so that `forks.learning.entities` can keep the factors. The linear part may
        see only columns behind them.
    tracking
        Whether corrections with short memories, mixed in by fixed share, follow changes of the stream that
        come at once, see `forks.algorithm.tracking`. Needs ``sum_kernel``, and the logistic loss: other
        scores are not log-odds, and so have no likelihood.
    seed
        Seed of everything random, >= 0.

    Raises
    ------
    ValueError
        A field is out of its range; the message names it and the accepted values.

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, section 5.1 and appendix H.

    Examples
    --------
    >>> settings = ForksSettings.practical(8, budget=50)
    >>> settings.linear_features, settings.rank, settings.features
    (9, 15, 24)
    >>> settings.entity_stop  # there are no entity blocks
    0
    >>> settings.first_seen, ForksSettings.paper(8, width=4.0, kernel_columns=(3, 8)).first_seen
    (0, 3)
    >>> settings.linear_precision, ForksSettings.practical(8, linear_alpha=30.0).linear_precision
    (1.0, 30.0)
    >>> settings.largest, ForksSettings.practical(8, standardize=False).largest
    (1e+100, 1000000.0)
    >>> ForksSettings.paper(8, width=4.0).features  # no linear part
    5
    >>> ForksSettings.practical(8, loss="squared").clip  # a regression
    inf
    >>> ForksSettings.practical(8, landmarks=200)
    Traceback (most recent call last):
        ...
    ValueError: landmarks = 200 is not accepted: it must be an integer from 1 to 159
    """

    dimension: int
    budget: int
    sketch_size: int
    landmarks: int
    rank: int
    cycle: int
    blocks: int
    width: float
    alpha: float
    hessian: Hessian
    sigma: float
    eta: float
    clip: float
    step: float
    decay: float
    loss: LossName
    sum_kernel: bool
    carry_over: bool
    memory: float
    bounded: bool
    standardize: bool
    refresh: int
    linear_columns: Columns
    kernel_columns: Columns
    entity_blocks: tuple[Columns, ...]
    seed: int
    linear_alpha: float | None = None
    offset_column: int | None = None
    tracking: bool = False

    @classmethod
    def practical(cls, dimension: int, *, budget: int = 160, **changes: Any) -> Self:
        """Return the settings with the best results on a real stream (KuaiRec with running statistics).

        Sizes follow the budget: with a smaller one, events cost less and the kernel is approximated less
        exactly. The width is 1.5 sqrt(kernel columns), about the distance between standardised points. Scores
        are log-odds and kept within +-10, except for squared loss, whose targets may have any value.
        Changes are tracked with the logistic loss and a linear part.

        Examples
        --------
        >>> ForksSettings.practical(8, width=2.0).landmarks
        80
        """
        columns = changes.get("kernel_columns", (0, dimension))
        logistic = changes.get("loss", "logistic") == "logistic"
        blocks = changes.get("blocks", 4)
        preset: dict[str, Any] = {
            "sketch_size": max(budget - budget % max(blocks, 1), blocks),
            "landmarks": max(1, budget // 2),
            "rank": max(1, 3 * budget // 10),
            "cycle": 8000,
            "blocks": blocks,
            "width": 1.5 * math.sqrt(max(1, columns[-1] - columns[0])),
            "alpha": 1.0,
            "hessian": "curvature",
            "sigma": 0.5,
            "eta": 0.0,
            "clip": math.inf if changes.get("loss") == "squared" else 10.0,
            "step": 0.2,
            "decay": 0.01,
            "loss": "logistic",
            "sum_kernel": True,
            "carry_over": True,
            "memory": 10_000.0,
            "bounded": True,
            "standardize": True,
            "refresh": 10,
            "linear_columns": (0, dimension),
            "kernel_columns": (0, dimension),
            "entity_blocks": (),
            "seed": 0,
            "tracking": logistic and changes.get("sum_kernel", True) is True,
        }
        return cls(**(preset | {"dimension": dimension, "budget": budget} | changes))

    @classmethod
    def paper(cls, dimension: int, *, budget: int = 50, **changes: Any) -> Self:
        """Return the settings of the paper's section 5.1 and appendix H.

        The paper has rho = 0.3 N, but a stream has no N, and it gives no value for C: the defaults of
        ``cycle`` and ``clip`` are this library's.

        Examples
        --------
        >>> ForksSettings.paper(24, width=2.0).rank
        5
        """
        preset: dict[str, Any] = {
            "sketch_size": budget,
            "landmarks": max(1, budget // 5),
            "rank": max(1, budget // 10),
            "cycle": 1000,
            "blocks": 1,
            "width": 1.0,
            "alpha": 0.01,
            "hessian": "gradient",
            "sigma": 0.5,
            "eta": 0.0,
            "clip": math.inf,
            "step": 0.2,
            "decay": 0.01,
            "loss": "hinge",
            "sum_kernel": False,
            "carry_over": False,
            "memory": math.inf,
            "bounded": False,
            "standardize": False,
            "refresh": 0,
            "linear_columns": (0, dimension),
            "kernel_columns": (0, dimension),
            "entity_blocks": (),
            "seed": 0,
        }
        return cls(**(preset | {"dimension": dimension, "budget": budget} | changes))

    @property
    def linear_features(self) -> int:
        """Number of features of the linear part, the intercept among them; 0 without one."""
        start, stop = self.linear_columns
        return 1 + stop - start if self.sum_kernel else 0

    @property
    def features(self) -> int:
        """Number of features in all, linear part first."""
        return self.linear_features + self.rank

    @property
    def linear_precision(self) -> float:
        """Prior precision of a weight of the linear part."""
        return self.alpha if self.linear_alpha is None else self.linear_alpha

    @property
    def largest(self) -> float:
        """Largest accepted absolute value of an input."""
        return LARGEST_UNSTANDARDIZED if self.sum_kernel and not self.standardize else LARGEST

    @property
    def first_seen(self) -> int:
        """First of the columns that the learner sees."""
        linear = self.linear_columns[0] if self.sum_kernel else self.dimension
        offset = self.dimension if self.offset_column is None else self.offset_column
        return min(self.kernel_columns[0], linear, offset)

    @property
    def entity_stop(self) -> int:
        """First of the kernel's columns behind the entity blocks."""
        return self.entity_blocks[-1][1] if self.entity_blocks else self.kernel_columns[0]

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_numbers()
        self._check_choices()
        self._check_columns()

    def _require(self, field: str, accepted: str, holds: bool) -> None:
        if not holds:
            raise ValueError(f"{field} = {getattr(self, field)!r} is not accepted: it must be {accepted}")

    def _check_sizes(self) -> None:
        for field, least in (("dimension", 1), ("budget", 2), ("cycle", 1), ("blocks", 1), ("refresh", 0)):
            self._require_integer(field, least, None)
        self._require_integer("seed", 0, 2**64 - 1)
        self._require_integer("landmarks", 1, self.budget - 1)
        self._require_integer("sketch_size", self.blocks, None)
        self._require(
            "sketch_size", f"a multiple of blocks = {self.blocks}", self.sketch_size % self.blocks == 0
        )
        self._require_integer("rank", 1, min(self.sketch_size, self.landmarks))

    def _require_integer(self, field: str, least: int, most: int | None) -> None:
        value = getattr(self, field)
        accepted = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
        self._require(
            field, accepted, type(value) is int and value >= least and (most is None or value <= most)
        )

    def _check_numbers(self) -> None:
        for field in ("width", "alpha", "step"):
            value = getattr(self, field)
            self._require(field, "a finite number > 0", math.isfinite(value) and value > 0)
        precision = self.linear_precision
        self._require(
            "linear_alpha", "a finite number > 0, or None", math.isfinite(precision) and precision > 0
        )
        for field in ("sigma", "eta", "decay"):
            value = getattr(self, field)
            self._require(field, "a finite number >= 0", math.isfinite(value) and value >= 0)
        self._require("clip", "a number > 0, or inf", self.clip > 0)
        self._require("memory", "a number > 0, or inf", self.memory > 0)
        self._require(  # squared loss is exp-concave, which sigma g g' relies on, where scores are bounded
            "clip",
            "finite with loss = 'squared' and hessian = 'gradient'",
            math.isfinite(self.clip) or self.loss != "squared" or self.hessian != "gradient",
        )
        self._require("decay", f"below 1 / step = {1 / self.step:g}", self.step * self.decay < 1)

    def _check_choices(self) -> None:
        for field, choices in (("loss", get_args(LossName)), ("hessian", get_args(Hessian))):
            self._require(field, "one of " + ", ".join(choices), getattr(self, field) in choices)
        self._require(
            "hessian",
            "'gradient' with loss = 'hinge', which has no curvature",
            not (self.loss == "hinge" and self.hessian == "curvature"),
        )
        for field in ("sum_kernel", "carry_over", "bounded", "standardize", "tracking"):
            self._require(field, "true or false", type(getattr(self, field)) is bool)
        self._require(
            "tracking",
            "false without sum_kernel, and with another loss than 'logistic'",
            not self.tracking or (self.sum_kernel and self.loss == "logistic"),
        )

    def _check_columns(self) -> None:
        for field in ("linear_columns", "kernel_columns"):
            columns = getattr(self, field)
            self._require(
                field,
                f"(start, stop) with 0 <= start < stop <= dimension = {self.dimension}",
                len(columns) == 2 and 0 <= columns[0] < columns[1] <= self.dimension,
            )
        edge = self.kernel_columns[0]
        for start, stop in self.entity_blocks:
            self._require(
                "entity_blocks",
                f"blocks (start, stop) from {self.kernel_columns[0]} on, each beginning where the one "
                f"before ends, within kernel_columns = {self.kernel_columns}",
                start == edge < stop <= self.kernel_columns[1],
            )
            edge = stop
        self._require(
            "linear_columns",
            f"behind entity_blocks, from {edge} on",
            not (self.sum_kernel and self.entity_blocks and self.linear_columns[0] < edge),
        )
        if self.offset_column is not None:
            self._require_integer("offset_column", edge if self.entity_blocks else 0, self.dimension - 1)
