"""FORKS as a classifier and a regressor with scikit-learn's methods; scikit-learn itself is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forks.adapters.mixed import table_rows, text_columns, wide_learner
from forks.adapters.presets import PresetName, check_names, preset_settings
from forks.arrays import BoolArray, FloatArray
from forks.learner import Forks
from forks.losses import probabilities
from forks.wide import WideForks

if TYPE_CHECKING:
    from sklearn.utils import Tags


class _Estimator:
    """Base of classifier and regressor: parameters, and a learner that is created with the first batch."""

    REGRESSION: ClassVar[bool]

    learner_: Forks | WideForks
    n_features_in_: int
    texts_: BoolArray

    def __init__(self, preset: PresetName = "practical", **settings: Any) -> None:
        check_names(settings)
        self.preset = preset
        self._settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  scikit-learn passes it
        """Return the preset and the settings that differ from it; ``deep`` makes no difference."""
        return {"preset": self.preset, **self._settings}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name for the next `fit`; a learner that exists already keeps its own."""
        settings = {name: value for name, value in params.items() if name != "preset"}
        check_names(settings)
        self.preset = params.get("preset", self.preset)
        self._settings = self._settings | settings
        return self

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({params})"

    def __sklearn_tags__(self) -> Tags:
        """Return the kind of this estimator for scikit-learn, the only caller."""
        from sklearn.utils import (  # noqa: PLC0415  only scikit-learn calls this
            ClassifierTags,
            InputTags,
            RegressorTags,
            Tags,
            TargetTags,
        )

        return Tags(
            estimator_type="regressor" if self.REGRESSION else "classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=None if self.REGRESSION else ClassifierTags(multi_class=False),
            regressor_tags=RegressorTags() if self.REGRESSION else None,
            input_tags=InputTags(),
        )

    def _learn(self, X: ArrayLike, labels: ArrayLike) -> None:
        columns = _columns(X)
        known = hasattr(self, "learner_")
        texts = self.texts_ if known else text_columns(X)
        learner = self.learner_ if known else self._new_learner(columns, texts)
        learner.learn_many(self._rows(learner, X, texts), labels)
        self.learner_, self.texts_ = learner, texts
        self.n_features_in_ = columns

    def _new_learner(self, dimension: int, texts: BoolArray) -> Forks | WideForks:
        regression, categories = self.REGRESSION, int(texts.sum())
        if categories:
            numbers = dimension - categories
            return wide_learner(self.preset, self._settings, categories, numbers, regression=regression)
        return Forks(preset_settings(self.preset, dimension, self._settings, regression=regression))

    def _rows(self, learner: Forks | WideForks, X: ArrayLike, texts: BoolArray) -> Any:
        """Return what the learner takes for ``X``."""
        return table_rows(learner, X, texts) if isinstance(learner, WideForks) else X

    def _forget(self) -> None:
        for name in ("learner_", "n_features_in_", "classes_", "texts_"):
            self.__dict__.pop(name, None)

    def _scores(self, X: ArrayLike) -> FloatArray:
        if not hasattr(self, "learner_"):
            raise ValueError(f"{type(self).__name__} has learned nothing: call fit or partial_fit first")
        return self.learner_.predict_many(self._rows(self.learner_, X, self.texts_))


class ForksClassifier(_Estimator):  # its base has __init__; numpydoc ignore=PR02
    """Binary classification of the rows of an array by FORKS, with scikit-learn's methods.

    Rows are learned in order, so `partial_fit` on parts gives the same bits as on the whole. Columns of
    objects, as data frames have, that hold text in the first batch are categories (see `forks.WideForks`).

    Parameters
    ----------
    preset
        ``practical`` or ``paper``, see `forks.ForksSettings`.
    settings
        Fields of `forks.ForksSettings` that differ, without the dimension.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Both classes, sorted; positive scores belong to the second one.
    learner_
        The `forks.Forks` that learns.
    n_features_in_
        Number of columns.

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(7).uniform(-1, 1, (2000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = ForksClassifier(width=1.0)
    >>> model.partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    ForksClassifier(preset='practical', width=1.0)
    >>> model.predict([[0.5, 0.5], [0.5, -0.5]]).tolist()
    ['same', 'different']
    >>> model.predict_proba([[0.5, 0.5]]).shape
    (1, 2)
    """

    REGRESSION = False

    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Reset, and learn the rows of ``X`` (n, columns) with the classes ``y`` (n,) in order."""
        self._forget()
        return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn the rows of ``X`` (n, columns) with the classes ``y`` (n,) in order.

        Parameters
        ----------
        X : ndarray, shape (n, columns)
            Rows to learn.
        y : ndarray, shape (n,)
            The rows' classes, two of any type.
        classes : ndarray, shape (2,)
            Both classes; needed in the first call if its ``y`` holds only one of them.

        Raises
        ------
        ValueError
            There are not two classes, ``y`` has a further one, or ``X`` is not accepted. The learner has not
            changed.
        """
        targets = np.asarray(y)
        known = self._classes(targets, classes)
        unknown = np.setdiff1d(targets, known)
        if len(unknown):
            raise ValueError(f"y has the class {unknown[0]!r}, which is none of {known.tolist()}")
        self._learn(X, np.where(targets == known[1], 1.0, -1.0))
        self.classes_ = known
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the scores of the rows of ``X`` (n, columns), (n,): positive for ``classes_[1]``."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row of ``X`` (n, columns), (n,)."""
        positive = self._scores(X) > 0.0
        predicted: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return predicted

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of ``classes_`` for the rows of ``X`` (n, columns), (n, 2).

        Raises
        ------
        ValueError
            The loss is not logistic: its scores are not log-odds.
        """
        scores = self._scores(X)
        learner = self.learner_.dense if isinstance(self.learner_, WideForks) else self.learner_
        loss = learner.settings.loss
        if loss != "logistic":
            raise ValueError(f"loss = {loss!r} has no probabilities: 'logistic' has")
        return np.column_stack([probabilities(-scores), probabilities(scores)])

    def _classes(self, targets: NDArray[Any], given: ArrayLike | None) -> NDArray[Any]:
        if hasattr(self, "classes_"):
            if given is not None and not np.array_equal(np.unique(given), self.classes_):
                raise ValueError(f"classes = {given} differ from those learned, {self.classes_.tolist()}")
            return self.classes_
        found: NDArray[Any] = np.unique(targets if given is None else np.asarray(given))
        if len(found) != 2:
            raise ValueError(f"classes must be two, not {found.tolist()}; name both if y has one")
        return found


class ForksRegressor(_Estimator):  # as above; numpydoc ignore=PR02
    """Regression on the rows of an array by FORKS with squared loss, with scikit-learn's methods.

    Columns of text are categories, as with `ForksClassifier`.
    Targets whose mean is far from zero, measured by their deviation, are learned slowly: subtract it, or
    put scikit-learn's ``TransformedTargetRegressor`` around the model.

    Parameters
    ----------
    preset
        ``practical`` or ``paper``, see `forks.ForksSettings`.
    settings
        Fields of `forks.ForksSettings` that differ, without the dimension.

    Attributes
    ----------
    learner_
        The `forks.Forks` that learns.
    n_features_in_
        Number of columns.

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(7).uniform(-2, 2, (2000, 1))
    >>> model = ForksRegressor(width=0.5).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.02)
    True
    """

    REGRESSION = True

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Reset, and learn the rows of ``X`` (n, columns) with the targets ``y`` (n,) in order."""
        self._forget()
        return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the rows of ``X`` (n, columns) with the targets ``y`` (n,) in order.

        Raises
        ------
        ValueError
            ``X`` or ``y`` is not accepted. The learner has not changed.
        """
        self._learn(X, y)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the predicted targets of the rows of ``X`` (n, columns), (n,)."""
        return self._scores(X)


def _columns(X: ArrayLike) -> int:
    """Return the number of columns of ``X``, or raise a ValueError; `Forks` checks the rest."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"X must have shape (n, columns), not {shape}")
    return int(shape[1])
