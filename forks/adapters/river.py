"""FORKS as a River classifier and a River regressor, over dictionaries of features."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'forks.adapters.river needs River. Install it with: pip install "forks-stream[river]"', name="river"
    ) from error

from forks.adapters.mixed import MixedFeatures, Texts, is_text, rows_of, wide_learner
from forks.adapters.presets import PresetName, preset_settings
from forks.adapters.widening import widened, widened_by_numbers
from forks.arrays import FloatArray
from forks.checks import LARGEST, check_label
from forks.learner import Forks
from forks.losses import probability
from forks.settings import ForksSettings
from forks.wide import WideForks

# These settings are column numbers, but the features of a dictionary have names.
COLUMN_SETTINGS = ("linear_columns", "kernel_columns", "entity_blocks")


class _RiverEstimator(base.Estimator):
    """A learner of dictionaries: `Forks` for numbers, `forks.WideForks` where there is text beside them.

    A number gets its column when an event with it is first learned; numbers that are new together are sorted
    by name, so that a dictionary's order does not matter. A number that an event lacks is zero. Predictions
    ignore numbers that no learned event had; a new one is treated as if it had been zero in all earlier
    events (see `forks.adapters.widening.widened`). Texts of the first event that is learned are categories.
    """

    REGRESSION: ClassVar[bool]

    def __init__(self, preset: PresetName = "practical", **settings: Any) -> None:
        self.preset = preset
        self.settings = settings
        self._columns: dict[Hashable, int] = {}
        self._mixed: MixedFeatures | None = None
        self._learner: Forks | WideForks | None = None
        self._loss = self._settings_of(1).loss  # checks the settings

    def _settings_of(self, dimension: int) -> ForksSettings:
        for name in COLUMN_SETTINGS:
            if name in self.settings:
                raise ValueError(f"{name} numbers columns: select features by name, in River's pipeline")
        return preset_settings(self.preset, dimension, self.settings, regression=self.REGRESSION)

    def _score(self, x: Mapping[Hashable, Any]) -> float:
        numbers, texts = _split(x)
        if self._learner is None:
            return 0.0
        return self._learner.predict_one(self._row(numbers, texts))

    def _learn(self, x: Mapping[Hashable, Any], label: float) -> None:
        """Learn a label that was checked; ``x`` is checked before anything changes."""
        numbers, texts = _split(x)
        learner = self._learner_of(numbers, texts)
        learner.learn_one(self._row(numbers, texts), label)

    def _learner_of(self, numbers: Mapping[Hashable, float], texts: Texts) -> Forks | WideForks:
        """Return the learner, created or widened if there are new features."""
        new = sorted((name for name in numbers if name not in self._columns), key=str)
        dimension = len(self._columns) + len(new)
        if self._learner is None:
            self._learner = self._first_learner(dimension, texts)
        elif texts and self._mixed is None:
            raise ValueError(
                f"feature {min(texts, key=str)!r} must be a number: the first event that was learned had no "
                "text, so no event may have any"
            )
        elif new and isinstance(self._learner, WideForks):
            self._learner = widened_by_numbers(self._learner, len(new))
        elif new and isinstance(self._learner, Forks):
            self._learner = widened(self._learner, dimension)
        self._columns |= {name: column for column, name in enumerate(new, start=len(self._columns))}
        return self._learner

    def _first_learner(self, numbers: int, texts: Texts) -> Forks | WideForks:
        if not (numbers or texts):
            raise ValueError("x is empty: the first event to learn from needs at least one feature")
        if not texts:
            return Forks(self._settings_of(numbers))
        categories = sorted((name for name, value in texts.items() if isinstance(value, str)), key=str)
        learner = wide_learner(
            self.preset, self.settings, len(categories), numbers, regression=self.REGRESSION
        )
        self._mixed = MixedFeatures(tuple(categories))
        return learner

    def _row(self, numbers: Mapping[Hashable, float], texts: Texts) -> FloatArray:
        row = np.zeros(len(self._columns))
        for name, number in numbers.items():
            if name in self._columns:
                row[self._columns[name]] = number
        if self._mixed is None or not isinstance(self._learner, WideForks):
            return row
        found: FloatArray = rows_of(self._learner, self._mixed, [texts], row)[0]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle and deepcopy, with the learner as its settings and state."""
        learner = None if self._learner is None else self._learner.copy()
        return self.__dict__ | {"_columns": dict(self._columns), "_learner": learner}


class ForksClassifier(_RiverEstimator, base.Classifier):  # its base has __init__; numpydoc ignore=PR02
    """Binary classification of dictionaries of numbers, categories and words by FORKS, for River.

    Labels are True and False (1 and 0 are accepted too). Features may come and go: a number that an event
    lacks is zero, and a new one is treated as if it had been zero in all earlier events. Text is a category,
    a list or a set of texts are words, each with weights of its own (see `forks.WideForks`). If events have
    text, then the first that is learned must have some; a category that it lacks counts as a word.

    Parameters
    ----------
    preset
        ``practical`` or ``paper``, see `forks.ForksSettings`.
    settings
        Fields of `forks.ForksSettings` that differ, without dimension and columns, which follow from the
        features. A width that is not given is the preset's for the features of the first event.

    Raises
    ------
    ValueError
        A setting, a feature or a label is not accepted. The learner has not changed.

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from forks.adapters.river import ForksClassifier
    >>> model = ForksClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC())  # doctest: +ELLIPSIS
    ROCAUC: 95...%
    """

    REGRESSION = False

    def learn_one(self, x: dict[Hashable, Any], y: base.typing.ClfTarget) -> None:
        """Learn that the features ``x`` have the label ``y``."""
        if y not in {True, False}:
            raise ValueError(f"y must be True or False, not {y!r}")
        self._learn(x, 1.0 if y else -1.0)

    def predict_one(self, x: dict[Hashable, Any], **_: Any) -> bool:
        """Return the more probable label of ``x``; False if both are equally probable."""
        return self._score(x) > 0.0

    def predict_proba_one(self, x: dict[Hashable, Any], **_: Any) -> dict[base.typing.ClfTarget, float]:
        """Return the probability of False and of True.

        Raises
        ------
        NotImplementedError
            The loss is not logistic: its scores are not log-odds.
        """
        if self._loss != "logistic":
            raise NotImplementedError(f"loss = {self._loss!r} has no probabilities: 'logistic' has")
        score = self._score(x)
        return {False: probability(-score), True: probability(score)}


class ForksRegressor(_RiverEstimator, base.Regressor):  # as above; numpydoc ignore=PR02
    """Regression on dictionaries of numbers, categories and words by FORKS with squared loss, for River.

    Features may come and go, as with `ForksClassifier`. Targets whose mean is far from zero, measured by
    their deviation, are learned slowly: put River's ``TargetStandardScaler`` around the model.

    Parameters
    ----------
    preset
        ``practical`` or ``paper``, see `forks.ForksSettings`.
    settings
        Fields of `forks.ForksSettings` that differ, without dimension and columns, which follow from the
        features. A width that is not given is the preset's for the features of the first event.

    Raises
    ------
    ValueError
        A setting, a feature or a target is not accepted. The learner has not changed.

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from forks.adapters.river import ForksRegressor
    >>> model = preprocessing.TargetStandardScaler(ForksRegressor())
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())  # doctest: +ELLIPSIS
    MAE: 0.4...
    """

    REGRESSION = True

    def learn_one(self, x: dict[Hashable, Any], y: base.typing.RegTarget) -> None:
        """Learn that the features ``x`` have the target ``y``."""
        self._learn(x, check_label("y", y, "squared"))

    def predict_one(self, x: dict[Hashable, Any]) -> base.typing.RegTarget:
        """Return the value predicted for ``x``; 0 before anything was learned."""
        return self._score(x)


def _split(x: Mapping[Hashable, Any]) -> tuple[dict[Hashable, float], dict[Hashable, Any]]:
    """Return the numbers as finite floats and the texts, or raise a ValueError that names what is neither."""
    numbers, texts = {}, {}
    for name, value in x.items():
        if is_text(value):
            texts[name] = value
            continue
        try:
            within = math.fabs(value) <= LARGEST  # unlike float(), it does not accept text
        except (TypeError, OverflowError) as error:
            raise ValueError(f"feature {name!r} must be a number or text: {error}") from error
        if not within:
            raise ValueError(f"feature {name!r} must be finite and within +-{LARGEST:g}, not {value!r}")
        numbers[name] = float(value)
    return numbers, texts
