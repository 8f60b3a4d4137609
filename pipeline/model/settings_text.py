"""The settings that outputs depend on, as state records keep them: text by name."""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, astuple, fields
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

from forks import ForksSettings
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.settings import FORKS, Config, Corrections, Labels
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import StateError
from pipeline.features.binary import TARGET, BinaryTarget
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.model.rival import RIVALS, RivalSettings, parameter_types
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.encoding import encode
from pipeline.records.fields import FEATURES_LENGTH

LEARNER_PREFIX: Final = "learner."
"""The prefix of the names of the learner's settings."""
CHALLENGERS_PREFIX: Final = "challengers."
"""The prefix of the names of the challengers' settings; the challenger's own name follows."""
FEATURE_KIND: Final = "features.kind"
"""The setting that names the kind of the running features."""
CORRECTIONS: Final = "join.corrections"
"""The setting that says what later labels of an event teach."""
TARGET_PREFIX: Final = "stream.target."
"""The prefix of the names of the settings of the target."""
KIND: Final = "learner"
"""The setting that names a challenger's learner: FORKS, or which rival."""
STREAM_NAMES: Final = "stream.names"
"""The setting that names ids, labels and carried numbers in outputs."""
OUTPUTS_FORMAT: Final = "stream.outputs.format"
"""The setting that says how outputs are written."""
STREAM_FEATURES: Final = "stream.features"
"""The setting that names the features of a stream whose definition says which there are."""
TARGET_KIND: Final = f"{TARGET_PREFIX}kind"
"""The setting that names the kind of the target, if it is not binary."""
STREAM_TABLES: Final = "stream.tables"
"""The setting that defines the live tables of a stream."""
_UNSAID: Final = (("encoding", "cyclic"), ("indicator", False))
"""Defaults of features that are not said."""
_TARGET_NAMES: Final = tuple(f"{TARGET_PREFIX}{name}" for name in ("above", "cap", "scale"))
"""The names of a binary target's settings, in the order of its fields."""
_REGRESSION_NAMES: Final = tuple(f"{TARGET_PREFIX}{name}" for name in ("offset", "cap", "scale"))
"""The same of a regression target."""
TARGET_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip(_TARGET_NAMES, map(str, astuple(TARGET)), strict=True))
)
"""The text of the settings of KuaiRec's target, which are not written."""
LEARNER_TYPES: Final[Mapping[str, Any]] = MappingProxyType(get_type_hints(ForksSettings))
"""The types of the settings of FORKS, by name."""
DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {field.name: field.default for field in fields(ForksSettings) if field.default is not MISSING}
)
"""The defaults of those settings of FORKS that have one, by name."""


def learner_text(learner: ForksSettings) -> dict[str, str]:
    """Return the learner's settings as text by name.

    Settings with a default are left out where they have it: older versions did not know them.

    Examples
    --------
    >>> text = learner_text(ForksSettings.paper(8))
    >>> text["learner.width"], text["learner.clip"], text["learner.kernel_columns"]
    ('1.0', 'inf', '(0, 8)')
    >>> learner_from(text) == ForksSettings.paper(8)
    True
    """
    return {LEARNER_PREFIX + name: str(value) for name, value in _written(learner).items()}


def kind_text(kind: FeatureKind) -> dict[str, str]:
    """Return the kind of the running features as a setting; none for `running`, which older versions had.

    Examples
    --------
    >>> kind_text("effects"), kind_text("running")
    ({'features.kind': 'effects'}, {})
    """
    return {} if kind == "running" else {FEATURE_KIND: kind}


def kind_from(settings: Mapping[str, str]) -> FeatureKind:
    """Return the kind from `kind_text`; other settings are ignored.

    Raises
    ------
    StateError
        This program has no such kind.

    Examples
    --------
    >>> kind_from({"features.kind": "effects", "tables": "b"}), kind_from({"tables": "b"})
    ('effects', 'running')
    """
    kind = settings.get(FEATURE_KIND, "running")
    for known in get_args(FeatureKind):
        if kind == known:
            return cast(FeatureKind, known)
    raise StateError(
        f"the outputs were made with running features of the kind {kind!r:.80}, which is unknown"
    )


def corrections_text(corrections: Corrections) -> dict[str, str]:
    """Return what later labels teach as a setting; none where they teach nothing.

    Examples
    --------
    >>> corrections_text("off"), corrections_text("replace")
    ({}, {'join.corrections': 'replace'})
    """
    return {} if corrections == "off" else {CORRECTIONS: corrections}


def names_text(stream: Stream) -> dict[str, str]:
    """Return the names of ids, labels and carried numbers in outputs as a setting; none for KuaiRec's.

    Examples
    --------
    >>> names_text(KUAIREC)
    {}
    """
    names = _names(stream)
    return {} if names == DEFAULT_NAMES else {STREAM_NAMES: names}


def _names(stream: Stream) -> str:
    return ", ".join([*stream.entities, stream.target.name, *stream.interactions.carried])


DEFAULT_NAMES: Final = _names(KUAIREC)
"""The names of KuaiRec's stream, which are not written."""


def outputs_text(stream: Stream) -> dict[str, str]:
    """Return how outputs are written as a setting; none for plain JSON, which older versions had.

    Examples
    --------
    >>> outputs_text(KUAIREC)
    {}
    """
    written = stream.outputs.format
    return {} if written == "json" else {OUTPUTS_FORMAT: written}


def features_text(stream: Stream) -> dict[str, str]:
    """Return what a definition says of its features as a setting; none where it says nothing of them.

    Examples
    --------
    >>> features_text(KUAIREC)
    {}
    >>> features_text(KUAIREC.model_copy(update={"effects": ("user_id", "video_id")}))
    {'stream.features': '{"effects":["user_id","video_id"]}'}
    """
    said = stream.model_dump(mode="json", include={"key", "features", "running", "effects"})
    for name, feature in said["features"].items():
        said["features"][name] = {
            key: value for key, value in feature.items() if key != "field" and (key, value) not in _UNSAID
        }
    said["signals"] = stream.labels.signals
    said["weight"] = None if stream.labels.weight is None else True
    said["weights"] = stream.labels.weights
    said["items"] = [[*stream.entities][number] for number in stream.item_entities]
    named = {name: value for name, value in said.items() if value not in (None, {}, [])}
    return {STREAM_FEATURES: encode(named).decode()} if named else {}


def sparse_text(config: Config, *, has_part: bool) -> dict[str, str]:
    """Return the settings of the learner's sparse part; none for a stream without one.

    Examples
    --------
    >>> sparse_text(Config(), has_part=True)
    {'features.max_categories': '1048576', 'stream.crosses': 'pairs'}
    """
    if not has_part:
        return {}
    crosses = config.stream.crosses
    return {
        "features.max_categories": str(config.features.max_categories),
        "stream.crosses": crosses if isinstance(crosses, str) else encode(crosses).decode(),
    }


def tables_text(stream: Stream) -> dict[str, str]:
    """Return the live tables of a definition as a setting; none where there are none.

    They are derived again from their topics, so where their fields are is a part of it.

    Examples
    --------
    >>> tables_text(KUAIREC)
    {}
    """
    tables = stream.model_dump(mode="json", include={"tables"})["tables"]
    return {STREAM_TABLES: encode(tables).decode()} if tables else {}


def target_text(target: Target) -> dict[str, str]:
    """Return the settings of the target as text by name; those with KuaiRec's value are left out.

    Examples
    --------
    >>> target_text(TARGET), target_text(BinaryTarget(0.5, 2.0, 0.75))
    ({}, {'stream.target.above': '0.5'})
    """
    if isinstance(target, RegressionTarget):
        return {TARGET_KIND: "regression", **dict(zip(_REGRESSION_NAMES, _numbers(target), strict=True))}
    assert isinstance(target, BinaryTarget)
    text = dict(zip(_TARGET_NAMES, _numbers(target), strict=True))
    return {name: value for name, value in text.items() if value != TARGET_DEFAULTS[name]}


def target_from(settings: Mapping[str, str]) -> Target:
    """Return the target from `target_text`; other settings are ignored.

    Raises
    ------
    StateError
        The settings are not those of this program's target.

    Examples
    --------
    >>> target_from({"stream.target.above": "0.5", "tables": "b"})
    BinaryTarget(threshold=0.5, cap=2.0, scale=0.75)
    """
    make: Callable[..., Target] = BinaryTarget
    found = {name: settings.get(name, default) for name, default in TARGET_DEFAULTS.items()}
    if settings.get(TARGET_KIND) == "regression":
        make, found = RegressionTarget, {name: settings.get(name, "") for name in _REGRESSION_NAMES}
    known = found if make is BinaryTarget else {TARGET_KIND, *found}
    unknown = [name for name in settings if name.startswith(TARGET_PREFIX) and name not in known]
    if unknown:
        raise StateError(f"the outputs were made with the setting {unknown[0]:.80}, which is unknown")
    try:
        return make(*map(float, found.values()))
    except ValueError as error:
        raise StateError(f"no worker wrote these settings of a target: {error}") from error


def _numbers(target: BinaryTarget | RegressionTarget) -> list[str]:
    return [str(number) for number in astuple(target)]


def labels_text(labels: Labels) -> dict[str, str]:
    """Return the settings of a label policy as text by name; none where all labels are learned.

    Examples
    --------
    >>> labels_text(Labels()), labels_text(Labels(policy="random"))["labels.rate"]
    ({}, '0.2')
    """
    if labels.policy == "all":
        return {}
    return {f"labels.{name}": str(value) for name, value in labels.model_dump().items()}


def learner_from(settings: Mapping[str, str]) -> ForksSettings:
    """Return the learner's settings from `learner_text`; other settings are ignored.

    Raises
    ------
    StateError
        The settings are not those of this program's learner.
    """
    return _forks_from(settings_under(settings, LEARNER_PREFIX), LEARNER_PREFIX)


def challengers_text(challengers: Mapping[str, ChallengerSettings]) -> dict[str, str]:
    """Return the challengers' settings as text by name.

    Examples
    --------
    >>> text = challengers_text({"small": RivalSettings.of("perceptron", {"width": 2.0})})
    >>> text
    {'challengers.small.learner': 'perceptron', 'challengers.small.width': '2.0'}
    >>> challengers_from(text)["small"].parameters
    (('width', 2.0),)
    """
    text: dict[str, str] = {}
    for name, challenger in challengers.items():
        if isinstance(challenger, ForksSettings):
            found: dict[str, Any] = {KIND: FORKS} | _written(challenger)
        else:
            found = {KIND: challenger.kind} | dict(challenger.parameters)
        text |= {f"{CHALLENGERS_PREFIX}{name}.{setting}": str(value) for setting, value in found.items()}
    return text


def challengers_from(
    settings: Mapping[str, str], dimension: int = FEATURES_LENGTH
) -> dict[str, ChallengerSettings]:
    """Return the challengers' settings from `challengers_text`; other settings are ignored.

    Parameters
    ----------
    settings
        The settings as text by name.
    dimension
        Columns of the features, from which rivals learn.

    Raises
    ------
    StateError
        This program has no such challengers.
    """
    names = sorted({name.split(".")[0] for name in settings_under(settings, CHALLENGERS_PREFIX)})
    return {name: _challenger_from(settings, f"{CHALLENGERS_PREFIX}{name}.", dimension) for name in names}


def _written(learner: ForksSettings) -> dict[str, Any]:
    """Return the settings that are written."""
    settings = asdict(learner)
    return {
        name: value for name, value in settings.items() if name not in DEFAULTS or value != DEFAULTS[name]
    }


def _challenger_from(settings: Mapping[str, str], prefix: str, dimension: int) -> ChallengerSettings:
    text = settings_under(settings, prefix)
    kind = text.pop(KIND, "")
    if kind == FORKS:
        return _forks_from(text, prefix)
    types = parameter_types(kind) if kind in RIVALS else {}
    if not text or not text.keys() <= types.keys():
        raise StateError(f"the outputs were made beside another version of the challenger {prefix}{kind}")
    try:
        parameters = {name: parse_value(types[name], value) for name, value in text.items()}
        return RivalSettings.of(kind, parameters, dimension)
    except (ValueError, SyntaxError) as error:
        raise StateError(f"no worker wrote these settings of a challenger: {error}") from error


def _forks_from(text: Mapping[str, str], prefix: str) -> ForksSettings:
    differing = (text.keys() - LEARNER_TYPES.keys()) | (LEARNER_TYPES.keys() - DEFAULTS.keys() - text.keys())
    if differing:
        names = ", ".join(sorted(prefix + name for name in differing))
        raise StateError(f"the outputs were made by another version of the learner, which differs in {names}")
    try:
        return ForksSettings(
            **{name: parse_value(LEARNER_TYPES[name], value) for name, value in text.items()}
        )
    except (ValueError, SyntaxError) as error:
        raise StateError(f"no worker wrote these settings of a learner: {error}") from error


def settings_under(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with a prefix, by the rest of their names.

    Examples
    --------
    >>> settings_under({"learner.loss": "hinge", "tables": "b"}, "learner.")
    {'loss': 'hinge'}
    """
    return {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}


def parse_value(kind: Any, text: str) -> Any:
    """Return a setting's value from its text.

    Parameters
    ----------
    kind
        Its type.
    text
        What `str` made of it.

    Raises
    ------
    ValueError, SyntaxError
        The text is not that of such a value.

    Examples
    --------
    >>> parse_value(float, "inf"), parse_value(tuple[int, int], "(0, 8)")
    (inf, (0, 8))
    """
    if kind is float:
        return float(text)  # which may be infinite
    return text if get_origin(kind) is Literal else literal_eval(text)


def as_toml(value: object) -> str:
    """Return a setting's value as TOML.

    Examples
    --------
    >>> [as_toml(value) for value in (200, 2.0, float("inf"), True, (0, 4), "hinge")]
    ['200', '2.0', 'inf', 'true', '[0,4]', '"hinge"']
    """
    return "inf" if isinstance(value, float) and math.isinf(value) else encode(value).decode()
