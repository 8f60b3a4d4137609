"""Learners that may run in the shadow: as the workers are told of them, and as the checker makes them."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from forks import Forks
from forks.rivals import AROW, Standardised
from pipeline.config.settings import Learner
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.model.learner_settings import learner_settings

Challenger: TypeAlias = Forks | Standardised
_SMALL: Final[dict[str, Any]] = {"budget": 60, "cycle": 300}
SETTINGS: Final = {
    "FORKS_CHALLENGERS": json.dumps({"small": {"learner": "forks", **_SMALL}, "linear": {"learner": "arow"}})
}


def challengers(features: FeatureSet = KUAIREC_FEATURES) -> dict[str, Challenger]:
    """The same two, which know nothing."""
    small = learner_settings(Learner.model_validate(_SMALL), 0, features=features)
    return {"linear": Standardised(AROW(len(features))), "small": Forks(small)}
