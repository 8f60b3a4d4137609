"""The running block of the context vector: statistics of the labels of users, videos and their tags.

Statistics change only when an outcome is learned, so that a feature holds no more than what was known when
the prediction was made. Memory is bounded: the entity updated longest ago is evicted first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.tree import FeatureKind
from pipeline.features import effects, totals
from pipeline.features.adjusted_effects import AdjustedEffects
from pipeline.features.entities import EntityTotals
from pipeline.features.tags import TagLists
from pipeline.features.target import TARGET, Target
from pipeline.records.fields import Id
from pipeline.records.outputs import EffectSums, VideoCounts

Floats: TypeAlias = NDArray[np.float64]

RUNNING = (
    "user_label_mean",
    "user_label_logit",
    "user_ratio_mean",
    "user_log_count",
    "video_label_mean",
    "video_label_logit",
    "video_ratio_mean",
    "video_log_count",
    "video_tag_label_mean",
    "video_tag_ratio_mean",
)
"""Names of the features of the kind `running`, in the order in which predictions carry them."""
EFFECTS = (
    "user_label_mean",
    "user_effect",
    "user_noise",
    "user_log_count",
    "video_label_mean",
    "video_effect",
    "video_noise",
    "video_log_count",
    "video_tag_ratio_mean",
    "effects_logit",
)
"""The same of the kind `effects`: means and counts are at the same places."""
FEATURES: Final[Mapping[FeatureKind, tuple[str, ...]]] = MappingProxyType(
    {"effects": EFFECTS, "running": RUNNING}
)
"""Names of the running features by kind."""


def entity_words(stream: Stream) -> tuple[str, str]:
    """Return what the two ids of a stream are ids of, in the words of its definition.

    Examples
    --------
    >>> entity_words(KUAIREC)
    ('user', 'video')
    """
    user, item = (name.removesuffix("_id") or name for name in stream.entities)
    return user, item


def feature_names(kind: FeatureKind, stream: Stream) -> tuple[str, ...]:
    """Return the names of the running features in the words of a stream.

    Examples
    --------
    >>> feature_names("effects", KUAIREC) == EFFECTS
    True
    """
    words = dict(zip(entity_words(KUAIREC), entity_words(stream), strict=True))
    parts = (name.partition("_") for name in FEATURES[kind])
    return tuple(f"{words.get(first, first)}{rest}{last}" for first, rest, last in parts)


_TAG_RATIO_MEAN = RUNNING.index("video_tag_ratio_mean")
_EFFECT_COLUMNS = [
    EFFECTS.index(name)
    for name in ("user_effect", "user_noise", "video_effect", "video_noise", "effects_logit")
]
"""Where the features of `pipeline.features.effects` go."""

NO_EFFECTS: Final = EffectSums(0.0, 0.0, 0.0, 0.0)
"""What is shared of a video if nothing is said of its effect."""


class RunningStatistics:
    """Running means and counts of users and videos, and effects of both, adjusted for one another.

    The kind `running` has label means, their logits, ratio means and log counts. The kind `effects` has label
    means and log counts, and what `pipeline.features.effects` finds.

    Means are smoothed towards the global mean with a prior weight of `pipeline.features.totals.PRIOR_WEIGHT`.
    Two more features are the video's means smoothed towards the mean of its tags, which is itself smoothed
    towards the global one, so that a new video starts from the mean of videos like it. For a video without
    known tags they equal its plain means.

    Parameters
    ----------
    max_entities
        The largest number of users, and of videos, to keep totals of.
    tags
        The videos' tags, as far as they are known.
    kind
        Which features there are.
    target
        The rules that make labels and signals of watch ratios.

    Examples
    --------
    >>> statistics = RunningStatistics(max_entities=1000, tags=TagLists({3: [8], 4: [8]}))
    >>> statistics.update(7, 3, True, 1.2)
    >>> named = dict(zip(statistics.names, statistics.features(7, 4), strict=True))
    >>> named["user_log_count"], named["video_log_count"]
    (0.693147, 0.0)
    >>> named["user_effect"] > 0.0, named["video_label_mean"] < named["video_tag_ratio_mean"]
    (True, True)
    """

    def __init__(
        self,
        max_entities: int,
        tags: TagLists | None = None,
        kind: FeatureKind = "effects",
        target: Target = TARGET,
    ) -> None:
        self.kind = kind
        self.names = FEATURES[kind]
        self._target = target
        self._lists = TagLists({}) if tags is None else tags
        self.users = EntityTotals(max_entities)
        self.videos = EntityTotals(max_entities, annotate=self._lists.find)
        self.tags: Floats = np.zeros((self._lists.count, 3))
        """Events, labels and ratios by tag, shape (tags, 3); a label counts for each tag of its video."""
        self.everything: Floats = np.zeros((1, 3))
        """Events, labels and ratios of all labels, shape (1, 3)."""
        self.effects = AdjustedEffects(self._lists.count) if kind == "effects" else None
        """None for other kinds."""

    def features(self, user_id: Id, video_id: Id) -> list[float]:
        """Return the running block for a user and a video, in the order of `names`."""
        users, videos, packed = self.users, self.videos, self._lists.packed
        user, video, tag_list = users.find(user_id), videos.find(video_id), self._lists.find(video_id)
        found = list(
            totals.features(
                user, video, tag_list, users.totals, videos.totals, self.tags, self.everything, packed
            )
        )
        if self.effects is not None:
            own = self.effects.reserve(len(users.totals), len(videos.totals)).arrays
            adjusted = effects.features(
                user, video, tag_list, own.users, own.items, own.groups, own.everything, packed
            )
            found[EFFECTS.index("video_tag_ratio_mean")] = found[_TAG_RATIO_MEAN]
            for column, value in zip(_EFFECT_COLUMNS, adjusted, strict=True):
                found[column] = value
        return found

    def update(self, user_id: Id, video_id: Id, label: bool, watch_ratio: float) -> None:
        """Count a label of a user and a video."""
        users, videos, lists = self.users, self.videos, self._lists
        user, video = users.row_for(user_id), videos.row_for(video_id)
        evicted_user, evicted_video = totals.add_label(
            user,
            video,
            lists.find(video_id),
            label,
            self._target.cap(float(watch_ratio)),
            users.totals,
            users.ring,
            users.capacity,
            videos.totals,
            videos.ring,
            videos.capacity,
            self.tags,
            self.everything,
            lists.packed,
        )
        if self.effects is not None:
            own = self.effects.reserve(len(users.totals), len(videos.totals)).arrays
            effects.learn(
                user,
                video,
                lists.find(video_id),
                self._target.signal(float(watch_ratio)),
                evicted_user,
                evicted_video,
                own.users,
                own.ring,
                own.ring_signals,
                own.items,
                videos.annotations,
                own.generations,
                own.groups,
                own.everything,
                lists.packed,
            )
        users.release_evicted([evicted_user] if evicted_user else [])
        videos.release_evicted([evicted_video] if evicted_video else [])

    def run(
        self,
        order: NDArray[np.int64],
        users: Sequence[Id],
        videos: Sequence[Id],
        labels: NDArray[np.bool_],
        watch_ratios: Floats,
    ) -> Floats:
        """Look up features and count labels in a given order, with the same bits as one by one.

        Parameters
        ----------
        order
            Steps, shape (steps,): i looks up event i's features, n + i counts its label. An event may have
            one of the two steps only; the other may belong to another call.
        users, videos, labels, watch_ratios
            Columns of the n events.

        Returns
        -------
        ndarray
            The features, shape (n, features); NaN for events without such a step.

        Raises
        ------
        ValueError
            The columns differ in length, or a step is out of range. Nothing has changed.
        """
        n = len(users)
        lengths = [n, len(videos), len(labels), len(watch_ratios)]
        if len(set(lengths)) > 1:
            raise ValueError(f"users, videos, labels and watch_ratios must have one length, not {lengths}")
        if order.size and not 0 <= order.min() <= order.max() < 2 * n:
            raise ValueError(f"steps in order must be from 0 to {2 * n - 1}, for {n} events")
        user_rows, video_rows = self.users.rows_for(users), self.videos.rows_for(videos)
        out = np.full((n, len(self.names)), np.nan)
        evicted = np.zeros((2, len(order)), dtype=np.int64)
        totals.run(
            order,
            user_rows,
            video_rows,
            self.videos.annotations[video_rows],
            labels,
            self._target.cap_many(watch_ratios),
            self.users.totals,
            self.users.ring,
            self.users.capacity,
            self.videos.totals,
            self.videos.ring,
            self.videos.capacity,
            self.tags,
            self.everything,
            self._lists.packed,
            out,
            evicted,
        )
        self._run_effects(order, user_rows, video_rows, watch_ratios, evicted, out)
        for entities, rows in zip((self.users, self.videos), evicted, strict=True):
            entities.release_evicted(rows[rows != totals.NO_ROW].tolist())
        return out

    def _run_effects(  # noqa: PLR0917 - as compiled code is called
        self,
        order: NDArray[np.int64],
        users: NDArray[np.int64],
        videos: NDArray[np.int64],
        watch_ratios: Floats,
        evicted: NDArray[np.int64],
        out: Floats,
    ) -> None:
        """Run the effects as `pipeline.features.totals.run` has run means, with the same parameters."""
        if self.effects is None:
            return
        own = self.effects.reserve(len(self.users.totals), len(self.videos.totals)).arrays
        found = np.full((len(out), len(_EFFECT_COLUMNS)), np.nan)
        effects.run(
            order,
            users,
            videos,
            self.videos.annotations[videos],
            self._target.signals(watch_ratios),
            evicted,
            own.users,
            own.ring,
            own.ring_signals,
            own.items,
            self.videos.annotations,
            own.generations,
            own.groups,
            own.everything,
            self._lists.packed,
            found,
        )
        out[:, EFFECTS.index("video_tag_ratio_mean")] = out[:, _TAG_RATIO_MEAN]
        out[:, _EFFECT_COLUMNS] = found

    def merge_shared(self, counts: Sequence[VideoCounts], sums: Sequence[EffectSums] = ()) -> None:
        """Add counts of labels that other partitions share, by video, and what they say of its effect.

        A video may occur more than once. Each time counts as an update of it. There are as many sums as
        counts, or none where nothing is said of effects.
        """
        videos = self.videos
        ids = [count.video_id for count in counts]
        rows = videos.rows_for(ids)
        of_labels = [(count.events, count.labels, count.ratios) for count in counts]
        evicted = np.zeros(len(ids), dtype=np.int64)
        totals.merge_shared(
            rows,
            videos.annotations[rows],
            np.array(of_labels, dtype=np.float64).reshape(len(ids), 3),
            videos.totals,
            videos.ring,
            videos.capacity,
            self.tags,
            self.everything,
            self._lists.packed,
            evicted,
        )
        if self.effects is not None:
            own = self.effects.reserve(len(self.users.totals), len(videos.totals)).arrays
            effects.merge_shared(
                rows,
                videos.annotations[rows],
                np.array([count.events for count in counts], dtype=np.int64),
                np.array([msgspec.structs.astuple(each) for each in sums or [NO_EFFECTS] * len(ids)]).reshape(
                    len(ids), 4
                ),
                evicted,
                own.users,
                own.items,
                own.generations,
                own.groups,
                own.everything,
                self._lists.packed,
            )
        videos.release_evicted(evicted[evicted != totals.NO_ROW].tolist())
