"""The settings, typed and checked. Nothing here reads a file: `pipeline.config.loader` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)

from pipeline.config.client_tables import ClientTable, RegistryTable
from pipeline.config.durations import Milliseconds, duration
from pipeline.config.feature_layout import FeatureKind, FeatureLayout
from pipeline.config.section import Section
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.target_settings import RegressionSettings

FIXED: Final[Mapping[str, str]] = {"registry.timeout": '"5s"', "worker.native_produce": "true"}
"""Values that cannot be set, by the names that files of earlier versions have: errors name them."""
CHAMPION = "champion"
"""The name of the learner of [learner], beside those of its challengers."""


class Kafka(Section):
    """Where Kafka is, and the names of topics and group."""

    bootstrap: str = Field("127.0.0.1:9092", min_length=1)
    """Where the brokers are, host:port, with commas between several."""
    prefix: str = Field("", pattern=r"^[a-zA-Z0-9._-]*$")
    """The prefix of every topic's name."""
    input_prefix: str | None = Field(None, pattern=r"^[a-zA-Z0-9._-]*$")
    """The prefix of the inputs' names; None for `prefix`."""
    group: str = Field("forks", min_length=1)
    """The consumer group; take another one for each prefix."""
    instance: str | None = Field(None, min_length=1)
    """A name kept over restarts, to get the partitions back at once."""
    client: ClientTable = Field(default_factory=dict)
    """Settings of librdkafka, such as "security.protocol" = "SASL_SSL". Their values are secrets, which only
    `pipeline.kafka.access.new_client.client_settings` reveals."""


def _registry_url(text: str) -> str:
    for url in text.split(","):
        if not re.fullmatch(r"https?://[^/\s@,]+(/[^\s,]*)?", url.strip()):
            raise ValueError(
                'it begins with http:// or https://, like "http://127.0.0.1:8081", and has no credentials: '
                'these are "basic.auth.user.info" in [registry.client]'
            )
    return text


class Registry(Section):
    """The schema registry of messages that are not plain JSON."""

    url: Annotated[str, AfterValidator(_registry_url)] | None = None
    """Where it is; several addresses of one registry have commas between them."""
    client: RegistryTable = Field(default_factory=dict)
    """Further settings of confluent-kafka's `SchemaRegistryClient`, such as basic.auth.user.info. Their
    values are secrets, which only `pipeline.kafka.registry` reveals."""


OnMissing: TypeAlias = Literal["negative", "drop"]
"""What an expired prediction teaches: that its label is negative, or nothing."""


Corrections: TypeAlias = Literal["off", "add", "replace"]
"""What a label teaches that comes for an event whose outcome is written."""


class Join(Section):
    """How predictions and labels are joined."""

    window: Milliseconds = duration("6h")
    """How long a prediction waits for its label."""
    early: Milliseconds = duration("10m")
    """How long a label waits for its interaction."""
    early_bytes: int = Field(256_000, ge=0, le=768_000)
    """Bytes of early labels in a partition's state record; beyond that the oldest are dead-lettered."""
    max_pending: int = Field(500_000, ge=1)
    """Waiting predictions of a partition; beyond that the oldest expire early."""
    max_in_memory: int = Field(200_000, ge=1)
    """Waiting predictions that are held in memory; older ones are in a temporary file."""
    spill_folder: Path | None = None
    """Folder of the file with older ones; None for the system's folder for temporary files."""
    max_closed: int = Field(1_000_000, ge=1)
    """Closed events that a partition remembers, to recognise duplicates; the oldest are forgotten first."""
    on_missing: OnMissing | None = None
    """What an expired prediction teaches, "negative" or "drop"; None for `negative`, or `drop` where numbers
    are predicted."""
    corrections: Corrections = "off"
    """What a later label of an event does: "off", "add" or "replace". It teaches nothing, is one more label,
    or takes the place of the former one, while the event is remembered."""
    max_ahead: Milliseconds = duration("10m", le=3_600_000)
    """How far an event's timestamp may be ahead of the wall clock."""
    max_jump: Milliseconds = duration("7d")
    """How far a single event's timestamp may be ahead of its input's latest one, unless the next messages
    confirm it; and, beside `window`, how far behind it."""
    max_idle: Milliseconds = duration("0ms")
    """How long an input at its end holds up the other, at most. 0 gives the lowest latency.
    Take a second or more where a worker runs while events are replayed much faster than they happened."""
    idle_advance: Milliseconds | None = None
    """Silence after which stream time follows the clock. It stays so far behind it; None for never."""

    @property
    def max_behind(self) -> int:
        """How far a single event's timestamp may be behind its input's latest one, in milliseconds."""
        return self.max_jump + self.window


class Features(Section):
    """Tables for the static blocks of the context vector."""

    users: Path | None = None
    """KuaiRec's user_features.csv."""
    tags: Path | None = None
    """KuaiRec's item_categories.csv."""
    daily: Path | None = None
    """KuaiRec's item_daily_features.csv."""
    same_day: bool = False
    """Use daily figures of the event's own day, which leaks the future; only to match the paper."""
    kind: FeatureKind = "effects"
    """The running features. `effects` has those of users and videos that are adjusted for one another, beside
    means and counts; `running` has means, ratio means and their logits, and is what groups have whose state
    records name no kind."""
    max_entities: int = Field(1_000_000, ge=1)
    """Users, and videos, with running statistics, at most."""
    max_categories: int = Field(1_048_576, ge=1_024, le=2**26)
    """Categories and pairs of them with weights, at most: a power of two."""

    @field_validator("max_categories")
    @classmethod
    def _check_power(cls, value: int) -> int:
        if value.bit_count() != 1:
            raise ValueError(f"it has to be a power of two, such as {1 << value.bit_length() - 1}")
        return value


class Learner(BaseModel):
    """The preset, and the settings of `forks.ForksSettings` that differ from it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    preset: Literal["practical", "paper"] = "practical"
    """What the settings are that are not named: `practical` predicts best, `paper` is as published."""

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings that differ from the preset, by name. They are not checked yet."""
        return dict(self.model_extra or {})


FORKS = "forks"
"""The name of the project's own learner, beside those of `pipeline.model.rival.RIVALS`."""
LEARNERS: Final = (
    *(FORKS, "arow", "bogd", "bpas", "fogd", "forgetron", "fouriernewton", "nogd", "ogd", "perceptron"),
    *("projectron", "projectronplus", "rbp", "scw", "skegd"),
)
"""The names of all learners that a challenger may be, for messages."""


class Challenger(BaseModel):
    """A challenger: FORKS with a preset and overrides, or a rival with its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    learner: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings beside the learner, by name. They are not checked yet."""
        return dict(self.model_extra or {})


ChallengerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
CHALLENGER_NAME = TypeAdapter[str](ChallengerName)


def _not_champion(challengers: dict[str, Challenger]) -> dict[str, Challenger]:
    if CHAMPION in challengers:
        raise ValueError(f"a challenger cannot be called {CHAMPION}: this is the name of [learner]")
    return challengers


AUTO_INTERVAL: Final = 20
"""Outcomes in a share with `sharing.interval = "auto"`."""
MAX_INTERVAL: Final = 100
"""Outcomes in a share, at most."""
AUTO_PARTITIONS: Final = range(2, 33)
"""Numbers of partitions that share with `sharing.interval = "auto"`."""


def _share_interval(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if value not in {"auto", "off"} and not (type(value) is int and 1 <= value <= MAX_INTERVAL):
        raise ValueError(f'it is "auto", "off", or a number of outcomes from 1 to {MAX_INTERVAL}')
    return value


class Sharing(Section):
    """What partitions share with one another."""

    interval: Annotated[Literal["auto", "off"] | int, BeforeValidator(_share_interval)] = "auto"
    """Outcomes in a shared record: "auto", "off" or a number. It has to fit into a message. With `off`, each
    partition learns from its own users only. With `auto`, `AUTO_PARTITIONS` share `AUTO_INTERVAL` outcomes at
    a time."""
    align: Milliseconds | None = Field(None, ge=1)
    """Windows of event time whose outcomes all learn one window later. None to learn what is there."""
    max_wait: Milliseconds = duration("60s")
    """How long a partition waits for others to come to the end of a window, with `align`."""

    @model_validator(mode="after")
    def _check_align(self) -> Self:
        if self.align is not None and self.interval == "off":
            raise ValueError('align needs shares: set interval to "auto" or to a number, or leave align out')
        return self

    def describe(self, partitions: int) -> str:
        """Say what so many partitions learn from, and what that means.

        Examples
        --------
        >>> print(Sharing().describe(1))
        1 partition learns from all users.
        >>> print(Sharing(interval="off").describe(8))
        8 partitions learn from their own users only: predictions are worse than those of one partition.
        """
        if partitions == 1:
            return "1 partition learns from all users."
        interval = self.interval_for(partitions)
        if interval is None:
            return (
                f"{partitions} partitions learn from their own users only: predictions are worse than those "
                "of one partition."
            )
        if self.align is None:
            return (
                f"{partitions} partitions tell one another what they learn, every {interval} outcomes "
                f"(sharing.interval = {self.interval}). Two replays of the same inputs differ by when that "
                'arrives: set sharing.align for the same bytes, or sharing.interval = "off".'
            )
        return (
            f"{partitions} partitions tell one another what they learn, every {interval} outcomes, and learn "
            f"it one window of {self.align / 1000:g} s of event time later. Two replays write the same bytes."
        )

    def interval_for(self, partitions: int) -> int | None:
        """Return the outcomes in a share of so many partitions, None if they share nothing.

        Examples
        --------
        >>> [Sharing().interval_for(partitions) for partitions in (1, 2, 32, 33)]
        [None, 20, 20, None]
        >>> [Sharing(interval=50).interval_for(partitions) for partitions in (1, 100)]
        [None, 50]
        """
        if self.interval == "off" or partitions == 1:
            return None
        if self.interval == "auto":
            return AUTO_INTERVAL if partitions in AUTO_PARTITIONS else None
        return self.interval


class Labels(Section):
    """Which labels are asked for and learned."""

    policy: Literal["all", "random", "margin", "adaptive"] = "all"
    """Which labels are learned: "all", "random", "margin", "adaptive". All but the first ask for labels: at
    random, where the score is close to 0, or where the score is unsure given how much is known. See
    `pipeline.model.label_policy`."""
    rate: float = Field(0.2, gt=0.0, le=1.0)
    """The share of a partition's predictions whose label is asked for."""
    learn_unasked: bool = False
    """Whether to learn a label that comes without having been asked for."""
    seed: int = Field(0, ge=0, lt=2**64)
    """The seed of the coins, and of what a follower draws."""


class Checkpoint(Section):
    """When a partition's model is written as a snapshot."""

    outcomes: int = Field(50_000, ge=1)
    """Outcomes after which a snapshot is written, at the latest."""
    interval: Milliseconds = duration("60s")
    """Time after which one is written. None is, if nothing was learned since the last."""
    key: Path | None = None
    """A file with a secret key that signs state records. So snapshots are signed, too; None for no MAC."""


class Worker(Section):
    """How a worker reads and processes batches."""

    batch: int = Field(5_000, ge=1, le=100_000)
    """The largest number of messages of a partition in one transaction."""
    buffer: int = Field(64 * 2**20, ge=2**20, le=2**30)
    """Bytes of messages of all inputs that may be read ahead."""
    dead_letters: int = Field(60_000, ge=1)
    """Dead letters of a partition in a minute, after which it pauses for the rest of the minute."""
    session_timeout: Milliseconds = duration("20s", ge=6_000)
    """How long the group waits for a worker that sends no heartbeat. A membership outlasts the death of the
    group's coordinator, as a transaction does, if the timeout is longer."""
    transaction_timeout: Milliseconds = duration("15s", ge=1_000)
    """How long readers wait for the transaction of a worker that is gone. A transaction outlasts the
    death of a broker, which Kafka notices after nine seconds, if the timeout is longer."""


LOCALHOST: Final = "127.0.0.1"


def host_and_port(address: str) -> tuple[str, int]:
    """Split an address; the host of IPv6 has brackets there.

    Parameters
    ----------
    address
        A host and a port, or a port of `LOCALHOST`.

    Returns
    -------
    tuple
        The host, without brackets, and the port.

    Raises
    ------
    ValueError
        The text is no address.

    Examples
    --------
    >>> host_and_port("0.0.0.0:9100"), host_and_port("[::1]:9100"), host_and_port("9100")
    (('0.0.0.0', 9100), ('::1', 9100), ('127.0.0.1', 9100))
    """
    match = re.fullmatch(r"(?:(?:\[([^\[\]]+)\]|([^\[\]:]+)):)?([0-9]{1,5})", address)
    if match is None or int(match[3]) > 65_535:
        raise ValueError('an address is a host and a port, like "127.0.0.1:9100" or "[::1]:9100", or a port')
    return match[1] or match[2] or LOCALHOST, int(match[3])


def _address(text: str) -> str:
    host_and_port(text)
    return text


class Metrics(Section):
    """Metrics for Prometheus, and probes."""

    address: Annotated[str, AfterValidator(_address)] | None = None
    """Where a worker answers scrapes and probes, such as "0.0.0.0:9100"; None to serve nothing."""


Explore: TypeAlias = Literal["off", "epsilon-greedy", "thompson"]
"""How a candidate is drawn: not at all, the best one but for a share of draws, or by the probability of being
the best."""


class Serve(Section):
    """How a follower answers requests for scores."""

    address: Annotated[str, AfterValidator(_address)] = "127.0.0.1:8080"
    """Where it listens; see `host_and_port`."""
    max_body: int = Field(2**20, ge=2**10, le=2**26)
    """Bytes of a request's body, at most."""
    max_candidates: int = Field(1_000, ge=1, le=100_000)
    """Candidates in one body, at most. Other requests wait while they are scored."""
    max_concurrency: int = Field(64, ge=1, le=10_000)
    """Requests under way at a time; more are answered with 503."""
    timeout: Milliseconds = duration("5s", ge=100, le=600_000)
    """How long a request may take to arrive, and an answer to be read."""
    max_lag: Milliseconds = duration("10s", ge=100)
    """How far models may be behind commits for the follower to be ready."""
    explore: Explore = "off"
    """How a candidate is drawn: "off", "epsilon-greedy" or "thompson". With `off`, none is."""
    epsilon: float = Field(0.05, ge=0.0, le=1.0)
    """The share of draws in which all candidates are equally probable. So each has a probability of at least
    `epsilon` divided by their number, also with `thompson`."""
    thompson_scale: float = Field(1.0, gt=0.0, le=1e6)
    """With `thompson`, the factor of the standard deviations of scores."""


MAX_SLATE_BYTES: Final = 900_000
"""Bytes of a slate's items in its prediction, at most: the default limit of brokers is a mebibyte."""


def _largest_item(features: int, entities: int, challengers: int, carried: int) -> int:
    """Return the bytes that an item of a slate may have in its prediction, with escaped ids.

    Examples
    --------
    >>> _largest_item(features=10, entities=1, challengers=0, carried=0)
    2020
    """
    return 160 + 26 * features + 1_600 * entities + 70 * challengers + 46 * carried


class Config(Section):
    """The whole configuration."""

    kafka: Kafka = Kafka()
    stream: Stream = KUAIREC
    registry: Registry = Registry()
    join: Join = Join()
    features: Features = Features()
    learner: Learner = Learner()
    challengers: Annotated[dict[ChallengerName, Challenger], AfterValidator(_not_champion)] = Field(
        default_factory=dict
    )
    sharing: Sharing = Sharing()
    labels: Labels = Labels()
    checkpoint: Checkpoint = Checkpoint()
    worker: Worker = Worker()
    metrics: Metrics = Metrics()
    serve: Serve = Serve()

    @model_validator(mode="after")
    def _check_features(self) -> Self:
        FeatureLayout.of(self.stream, self.features.kind)
        named = {"users": 1, "tags": 2, "daily": 2}
        for name, entities in named.items():
            if getattr(self.features, name) is not None and len(self.stream.entities) < entities:
                raise ValueError(
                    f"features.{name} is a table by the id of entity {entities}, which the stream lacks"
                )
        return self

    @model_validator(mode="after")
    def _check_slates(self) -> Self:
        if not self.stream.has_slates:
            return self
        most = self.stream.interactions.max_items
        if most > self.join.max_pending:
            raise ValueError(
                "stream.interactions.max_items is above join.max_pending: a slate has to find room"
            )
        features = len(FeatureLayout.of(self.stream, self.features.kind).names)
        fits = MAX_SLATE_BYTES // _largest_item(
            features,
            len(self.stream.item_entities),
            len(self.challengers),
            len(self.stream.interactions.carried),
        )
        if most > fits:
            raise ValueError(
                f"stream.interactions.max_items is {most}: with {features} features the prediction of so "
                f"many items may be larger than brokers accept, set it to at most {fits}"
            )
        return self

    @model_validator(mode="after")
    def _check_regression(self) -> Self:
        if isinstance(self.stream.target, RegressionSettings):
            if self.join.on_missing == "negative":
                raise ValueError('join.on_missing is "drop" where numbers are predicted: none is negative')
            if self.labels.policy not in {"all", "random"}:
                raise ValueError(
                    f'labels.policy is "all" or "random" where numbers are predicted: {self.labels.policy} '
                    "asks for labels of events that are near the limit of two classes"
                )
        return self
