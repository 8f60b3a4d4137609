"""Types of record fields, with their ranges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec


def always(**facts: Any) -> msgspec.Meta:
    """Return a note for the schema of what is written. Nothing is checked by it where records are read.

    Parameters
    ----------
    **facts
        Keywords of JSON Schema.
    """
    return msgspec.Meta(extra_json_schema=facts)


INTEGER_LIMIT = 2**63
IntegerId = Annotated[int, msgspec.Meta(ge=-INTEGER_LIMIT, le=INTEGER_LIMIT - 1)]
StringId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Id = IntegerId | StringId
IdPair = Annotated[tuple[Id, ...], msgspec.Meta(min_length=2, max_length=2)]
"""Two ids. A tuple of fixed length crashes msgspec 0.22 when its garbage is collected."""
AVRO_LOGICAL = "avro"
"""The name in `msgspec.Meta.extra` of the logical type that a field has in Avro."""
Timestamp = Annotated[int, msgspec.Meta(ge=0, le=2**53, extra={AVRO_LOGICAL: "timestamp-millis"})]
"""Milliseconds since 1970, UTC."""
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""Milliseconds."""
WatchRatio = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Play duration over video duration; above 1 where a video was watched more than once."""
LabelValue = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
"""A label's value, where it may be negative."""
LabelWeight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
"""How many labels a label counts as, which a test holds to `forks.checks.LARGEST_WEIGHT`."""
Propensity = Annotated[float, msgspec.Meta(ge=1e-100, le=1)]
"""The probability with which what is shown was chosen: not so small that squared weights overflow."""
TargetPropensity = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""The probability with which another policy would have chosen it."""
Count = Annotated[int, msgspec.Meta(ge=0)]
"""A number of records, or the number of one, from 0."""
WrittenCount = Annotated[int, always(minimum=0)]
"""The same where it is checked elsewhere, with a better message."""
Probability = Annotated[float, always(minimum=0, maximum=1)]
Loss = Annotated[float, always(minimum=0)]
WrittenRatio = Annotated[float, always(minimum=0, maximum=1e9)]
"""A watch ratio in an output."""
Scores = Annotated[
    dict[str, float], always(propertyNames={"pattern": "^[A-Za-z0-9_-]{1,40}$"}, minProperties=1)
]
"""Scores of the challengers by name, in the order of their names."""
FEATURES_LENGTH = 10
"""Features of KuaiRec's stream, which a test holds to `pipeline.config.feature_layout.FeatureLayout`."""
Features = Annotated[list[float], msgspec.Meta(min_length=FEATURES_LENGTH, max_length=FEATURES_LENGTH)]
"""The features of KuaiRec's stream."""
Status = Literal["labelled", "expired", "corrected", "replaced"]
"""What became of a prediction: a label came, none came, or a later label was learned, beside the former one
or in its place."""
