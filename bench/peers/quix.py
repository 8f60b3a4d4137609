"""The pipeline's job in Quix Streams, with a model of River's; runs in an environment of its own.

Both inputs are one stream in the order of their timestamps. The model sees the features that the pipeline's
sees: what the labels of the user, of the video and of its tags come to. A prediction waits in the user's
state until its label is there; then it becomes an outcome, and the model learns. Outputs, state and offsets
are committed in one transaction.

Two things are left out, in its favour. The model, and what is known of videos and tags, are in memory: state
is kept by key, the key is the user, and they belong to all users, so a restart would begin without them. And
no prediction expires.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from math import log, log1p
from pathlib import Path
from typing import Any

from quixstreams import Application, State
from river import linear_model, preprocessing

WATCHED = 0.75
"""A label above this watch ratio is positive."""
PRIOR = 10.0
"""Weight of the mean that another one leans on."""
RATIO_CAP = 2.0
"""Beyond, a watch ratio counts as this."""
CLIENT = {"compression.type": "lz4", "linger.ms": 5, "retry.backoff.ms": 5}
"""What the pipeline's producer has as well."""

Record = dict[str, Any]


class Totals:
    """Sums over labels: how many there were, how many said watched, and their watch ratios."""

    def __init__(self, tags: dict[Any, list[int]]) -> None:
        self._tags_of = tags
        self._videos: defaultdict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._tags: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._all = [0.0, 0.0, 0.0]

    def add(self, video: Any, watched: bool, ratio: float) -> None:
        """Count a label."""
        tags = [self._tags[tag] for tag in self._tags_of.get(video, ())]
        for sums in (self._videos[video], self._all, *tags):
            count(sums, watched, ratio)

    def features(self, user: list[float], video: Any) -> dict[str, float]:
        """Return means that lean on those of all events or of the tags, their logits, and log counts."""
        total, labels, ratios = self._all
        label_prior, ratio_prior = (labels + 0.5) / (total + 1.0), (ratios + 0.5) / (total + 1.0)
        sums = self._videos[video]
        tags = [self._tags[tag] for tag in self._tags_of.get(video, ())]
        all_tags = [sum(column) for column in zip(*tags, strict=True)] or [0.0, 0.0, 0.0]
        return {
            **block("user", user, label_prior, ratio_prior),
            **block("video", sums, label_prior, ratio_prior),
            "tag_label_mean": smoothed(sums[1], sums[0], smoothed(all_tags[1], all_tags[0], label_prior)),
            "tag_value_mean": smoothed(sums[2], sums[0], smoothed(all_tags[2], all_tags[0], ratio_prior)),
        }


def smoothed(total: float, events: float, prior: float) -> float:
    """Return a mean that leans on another one."""
    return (total + PRIOR * prior) / (events + PRIOR)


def count(sums: list[float], watched: bool, ratio: float) -> None:
    """Add a label to sums."""
    sums[0] += 1.0
    sums[1] += watched
    sums[2] += min(ratio, RATIO_CAP)


def block(name: str, sums: list[float], label_prior: float, ratio_prior: float) -> dict[str, float]:
    """Return the features of a user or a video."""
    mean = smoothed(sums[1], sums[0], label_prior)
    return {
        f"{name}_label_mean": mean,
        f"{name}_label_logit": log(mean / (1.0 - mean)),
        f"{name}_ratio_mean": smoothed(sums[2], sums[0], ratio_prior),
        f"{name}_log_count": log1p(sums[0]),
    }


class Predictor:
    """What is done with each record; the user's state is handed in."""

    def __init__(self, tags: dict[Any, list[int]]) -> None:
        self._model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        self._totals = Totals(tags)

    def handle(self, record: Record, state: State) -> list[Record]:
        """Answer an interaction with a prediction, a label with an outcome."""
        if "watch_ratio" in record:
            return self._learn(record, state)
        return [self._predict(record, state)]

    def _predict(self, interaction: Record, state: State) -> Record:
        features = self._totals.features(state.get("labels", [0.0, 0.0, 0.0]), interaction["video_id"])
        probability = self._model.predict_proba_one(features).get(True, 0.5)
        prediction = {
            "event_id": interaction["event_id"],
            "user_id": interaction["user_id"],
            "video_id": interaction["video_id"],
            "timestamp": interaction["timestamp"],
            "probability": probability,
            "predicted": probability > 0.5,
            "features": features,
        }
        state.set(interaction["event_id"], prediction)
        return prediction

    def _learn(self, label: Record, state: State) -> list[Record]:
        prediction = state.get(label["event_id"])
        if prediction is None:
            return []
        state.delete(label["event_id"])
        watched = label["watch_ratio"] > WATCHED
        self._model.learn_one(prediction["features"], watched)
        of_user = state.get("labels", [0.0, 0.0, 0.0])
        count(of_user, watched, label["watch_ratio"])
        state.set("labels", of_user)
        self._totals.add(label["video_id"], watched, label["watch_ratio"])
        joined = {
            "watch_ratio": label["watch_ratio"],
            "label": watched,
            "label_timestamp": label["timestamp"],
            "correct": watched == prediction["predicted"],
        }
        return [prediction | joined]


def tags_of(file: Path) -> dict[Any, list[int]]:
    """Return the tags of each video."""
    with file.open(newline="") as lines:
        return {int(row["video_id"]): json.loads(row["feat"]) for row in csv.DictReader(lines)}


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the broker's address")
    parser.add_argument("--prefix", required=True, help="put before the inputs' names")
    parser.add_argument("--group", required=True, help="the consumer group; outputs are named after it")
    parser.add_argument("--batch", type=int, required=True, help="messages in a transaction")
    parser.add_argument("--state", required=True, help="folder for the state")
    parser.add_argument(
        "--tags", required=True, type=Path, help="the videos' tags, as KuaiRec's item_categories.csv"
    )
    given = parser.parse_args()
    application = Application(
        broker_address=given.bootstrap,
        consumer_group=given.group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_every=given.batch,
        state_dir=given.state,
        producer_extra_config=CLIENT,
        loglevel="WARNING",
    )
    interactions, labels = (
        application.topic(f"{given.prefix}{name}", key_deserializer="str", value_deserializer="json")
        for name in ("interactions", "watch-labels")
    )
    predictions, outcomes = (
        application.topic(f"{given.group}-{name}", key_serializer="str", value_serializer="json")
        for name in ("predictions", "outcomes")
    )
    records = application.dataframe(interactions).concat(application.dataframe(labels))
    answers = records.apply(Predictor(tags_of(given.tags)).handle, stateful=True, expand=True)
    answers.filter(lambda answer: "label" not in answer).to_topic(predictions)
    answers.filter(lambda answer: "label" in answer).to_topic(outcomes)
    application.run()


if __name__ == "__main__":
    main()
