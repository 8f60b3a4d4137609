"""Specifications of an experiment's learners, as plain data, and functions that make the learners."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from forks import Forks, ForksSettings, rivals
from research.harness.counting import Learner, StreamResult, no_stages, run_stream
from research.harness.labelled import Labelled
from research.rivals import KOGD, KONS, PROSNKONS, SketchedKONS
from research.variants.eager import EagerProjectron, EagerRBP
from research.variants.published import PublishedForks

Option: TypeAlias = float | str | bool


@dataclass(frozen=True)
class LearnerSpec:
    """Name, kind, budget and options of a learner.

    Attributes
    ----------
    name
        Name in the tables.
    kind
        Kind of learner, a key of `KINDS`.
    budget
        Budget of the learner; None if it has none.
    options
        Names and values of the options of its kind.

    Examples
    --------
    >>> spec = papers_forks("FORKS", 50, width=2.0, cycle=300)
    >>> spec.make(24, seed=1).settings.rank
    5
    """

    name: str
    kind: str
    budget: int | None
    options: tuple[tuple[str, Option], ...]

    def replace(
        self, *, kind: str | None = None, budget: int | None = None, **options: Option
    ) -> LearnerSpec:
        """Return a copy with other values.

        Examples
        --------
        >>> spec = spec_of("NOGD", "nogd", 50, width=2.0)
        >>> spec.replace(budget=100, rank=5).options
        (('rank', 5), ('width', 2.0))
        """
        return spec_of(
            self.name,
            self.kind if kind is None else kind,
            self.budget if budget is None else budget,
            **(dict(self.options) | options),
        )

    def make(self, dimension: int, seed: int) -> Learner:
        """Return a new learner for vectors with ``dimension`` columns."""
        sizes = {} if self.budget is None else {"budget": self.budget}
        return KINDS[self.kind].make(dimension, seed=seed, **sizes, **dict(self.options))

    def run_stream(self, data: Labelled, seed: int) -> StreamResult:
        """Run a new learner over a stream."""
        return run_stream(self.make(data.X.shape[1], seed), data, KINDS[self.kind].in_stage_one)

    def key(self) -> Mapping[str, Any]:
        """Return all that decides the learner's results, as an object for JSON; the name is not part of it.

        ``preset`` is a hash of all settings of FORKS, including those of its preset, so that stored results
        of an earlier version of the preset are not reused.
        """
        key = {"kind": self.kind, "budget": self.budget, **dict(self.options)}
        settings = KINDS[self.kind].settings
        if settings is not None:
            made = settings(1, budget=self.budget, **dict(self.options))
            key["preset"] = hashlib.sha256(repr(made).encode()).hexdigest()[:16]
        return key


def spec_of(name: str, kind: str, budget: int | None, **options: Option) -> LearnerSpec:
    """Return the spec of a learner with these options."""
    return LearnerSpec(name, kind, budget, tuple(sorted(options.items())))


def papers_forks(name: str, budget: int, kind: str = "forks", **differs: Option) -> LearnerSpec:
    """Return the spec of FORKS with the sizes of section 5.1: s_p = B, s_m = 0.2 B, k = 0.1 B.

    Parameters
    ----------
    name
        Name in the tables.
    budget
        Budget B.
    kind
        Kind of learner, a key of `KINDS`.
    **differs
        Settings that differ from `ForksSettings.paper`, and ``stage_one``, the points stored by stage 1 in
        units of B: 2 by section 5.1 (a buffer of 2 B), 1 by Algorithm 1.
    """
    sizes: dict[str, Option] = {
        "sketch_size": budget,
        "landmarks": budget // 5,
        "rank": budget // 10,
        "stage_one": 2,
    }
    return spec_of(name, kind, budget, **(sizes | differs))


def papers_skegd(name: str, budget: int, **differs: Option) -> LearnerSpec:
    """Return the spec of SkeGD with the sizes of `papers_forks`, which section 5.1 gives to both."""
    return papers_forks(name, budget, "skegd", **differs)


def budgeted_rivals(budget: int, width: float) -> list[LearnerSpec]:
    """Return specs of the papers' rivals whose only parameter is a budget, in the order of Table 2."""
    names = ("RBP", "BPA-S", "Projectron", "BOGD", "FOGD", "NOGD")
    return [spec_of(name, name.lower(), budget, width=width) for name in names]


def further_rivals(budget: int, width: float, storing: Sequence[str] = ()) -> list[LearnerSpec]:
    """Return specs of rivals for which the FORKS paper prints no results.

    Parameters
    ----------
    budget
        Budget B.
    width
        Width of the Gaussian kernel.
    storing
        Names of the learners that store the stream (KOGD, KONS, Sketched-KONS) to include.
    """
    return [
        spec_of("Projectron++", "projectron++", budget, width=width),
        spec_of("Forgetron", "forgetron", budget, width=width),
        spec_of("Perceptron", "perceptron", None, width=width),
        *(spec_of(name, name.lower(), None, width=width) for name in storing),
        *(spec_of(f"{name}, linear", name.lower(), None) for name in ("OGD", "AROW", "SCW")),
    ]


class Kind(NamedTuple):
    """A kind of learner.

    Attributes
    ----------
    make
        Function that makes a learner from the dimension and, by name, ``seed``, ``budget`` (if it has one)
        and options.
    in_stage_one
        Function that returns whether such a learner is in its first stage.
    settings
        Function that makes the `ForksSettings` from the arguments of ``make``; None if the learner has none.
    """

    make: Callable[..., Learner]
    in_stage_one: Callable[[Any], bool] = no_stages
    settings: Callable[..., ForksSettings] | None = None


def _paper_settings(dimension: int, *, budget: int, stage_one: int, **options: Any) -> ForksSettings:
    return ForksSettings.paper(dimension, budget=stage_one * budget, **options)


def _forks(dimension: int, **options: Any) -> Learner:
    return Forks(_paper_settings(dimension, **options))


def _published(dimension: int, **options: Any) -> Learner:
    return PublishedForks(_paper_settings(dimension, **options))


def _practical(dimension: int, **options: Any) -> Learner:
    return Forks(ForksSettings.practical(dimension, **options))


def _skegd(dimension: int, *, budget: int, stage_one: int, **options: Any) -> Learner:
    return rivals.SkeGD(dimension, budget=stage_one * budget, **options)


def _fogd(dimension: int, *, budget: int, **options: Any) -> Learner:
    return rivals.FOGD(dimension, frequencies=4 * budget, **options)  # section 5.1


def _unseeded(make: Callable[..., Learner]) -> Callable[..., Learner]:
    """Return a function that accepts and ignores a seed, for a learner without randomness."""

    def make_unseeded(dimension: int, *, seed: int, **options: Any) -> Learner:  # noqa: ARG001 - see above
        return make(dimension, **options)

    return make_unseeded


def _forks_in_stage_one(learner: Forks) -> bool:
    return learner.state()["stage"] == 1


def _below_budget(learner: rivals.NOGD | rivals.SkeGD) -> bool:
    return learner.stored < learner.budget


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "forks": Kind(_forks, _forks_in_stage_one, _paper_settings),
        "forks practical": Kind(_practical, _forks_in_stage_one, ForksSettings.practical),
        "forks published": Kind(_published, lambda learner: learner.in_stage_one, _paper_settings),
        "skegd": Kind(_skegd, _below_budget, _paper_settings),
        "rbp": Kind(rivals.RBP),
        "rbp eager": Kind(EagerRBP),
        "bpa-s": Kind(_unseeded(rivals.BPAS)),
        "projectron": Kind(_unseeded(rivals.Projectron)),
        "projectron eager": Kind(_unseeded(EagerProjectron)),
        "projectron++": Kind(_unseeded(rivals.ProjectronPlus)),
        "forgetron": Kind(_unseeded(rivals.Forgetron)),
        "bogd": Kind(rivals.BOGD),
        "fogd": Kind(_fogd),
        "nogd": Kind(_unseeded(rivals.NOGD), _below_budget),
        "perceptron": Kind(_unseeded(rivals.Perceptron)),
        "kogd": Kind(_unseeded(KOGD)),
        "ogd": Kind(_unseeded(rivals.OGD)),
        "arow": Kind(_unseeded(rivals.AROW)),
        "scw": Kind(_unseeded(rivals.SCW)),
        "kons": Kind(_unseeded(KONS)),
        "sketched-kons": Kind(SketchedKONS),
        "pros-n-kons": Kind(PROSNKONS),
    }
)
"""Kinds of learners by name; the names are part of the keys of stored results."""
