"""The pipeline's job in Quix Streams, with a model of River's; runs in an environment of its own.

Both inputs are one stream in the order of their timestamps. A prediction waits in the user's state until its
label is there; then it becomes an outcome, and the model learns. Outputs, state and offsets are committed
in one transaction.

Two things are left out, in its favour. Model and videos' means are in memory: state is kept by key, the key
is the user, and both belong to all of them, so a restart would begin without them. And no prediction expires.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from math import log1p
from typing import Any

from quixstreams import Application, State
from river import linear_model, preprocessing

WATCHED = 0.75
"""A label above this watch ratio is positive."""
PRIOR = 10.0
"""Weight of the global mean in a user's or a video's."""
CLIENT = {"compression.type": "lz4", "linger.ms": 5, "retry.backoff.ms": 5}
"""What the pipeline's producer has as well."""

Record = dict[str, Any]


class Means:
    """Running means of labels, of videos and of all events."""

    def __init__(self) -> None:
        self.videos: defaultdict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.all = [0.0, 0.0]

    def mean(self, count: float, total: float) -> float:
        """Return a mean that leans on that of all events."""
        overall = (self.all[1] + 0.5) / (self.all[0] + 1.0)
        return (total + PRIOR * overall) / (count + PRIOR)


class Predictor:
    """What is done with each record; the user's state is handed in."""

    def __init__(self) -> None:
        self._model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        self._means = Means()

    def handle(self, record: Record, state: State) -> list[Record]:
        """Answer an interaction with a prediction, a label with an outcome."""
        if "watch_ratio" in record:
            return self._learn(record, state)
        return [self._predict(record, state)]

    def _predict(self, interaction: Record, state: State) -> Record:
        user = state.get("labels", [0.0, 0.0])
        video = self._means.videos[interaction["video_id"]]
        features = {
            "user": self._means.mean(*user),
            "video": self._means.mean(*video),
            "user_count": log1p(user[0]),
            "video_count": log1p(video[0]),
        }
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
        count, total = state.get("labels", [0.0, 0.0])
        state.set("labels", [count + 1.0, total + watched])
        for means in (self._means.videos[label["video_id"]], self._means.all):
            means[0] += 1.0
            means[1] += watched
        joined = {
            "watch_ratio": label["watch_ratio"],
            "label": watched,
            "label_timestamp": label["timestamp"],
            "correct": watched == prediction["predicted"],
        }
        return [prediction | joined]


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the broker's address")
    parser.add_argument("--prefix", required=True, help="put before the inputs' names")
    parser.add_argument("--group", required=True, help="the consumer group; outputs are named after it")
    parser.add_argument("--batch", type=int, required=True, help="messages in a transaction")
    parser.add_argument("--state", required=True, help="folder for the state")
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
    answers = records.apply(Predictor().handle, stateful=True, expand=True)
    answers.filter(lambda answer: "label" not in answer).to_topic(predictions)
    answers.filter(lambda answer: "label" in answer).to_topic(outcomes)
    application.run()


if __name__ == "__main__":
    main()
