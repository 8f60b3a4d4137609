"""Checks of label requests and shares while records are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.records.encoding import encode
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.tools.audit.differences import Ledger, field_difference
from pipeline.tools.audit.topic_records import Line

REQUESTS_CHECK: Final = "label requests compared with their prediction"


class Requests:
    """Holds requests against the predictions as these go by.

    Parameters
    ----------
    lines
        The requests, numbered.
    whole
        Whether none of them is gone. If some are, predictions before the first one left have none.
    topic
        Where they are.
    ledger
        Where to note what differs.
    """

    def __init__(self, lines: Iterator[Line[LabelRequest]], whole: bool, topic: str, ledger: Ledger) -> None:
        self._lines = lines
        self._topic = topic
        self._ledger = ledger
        self._next = next(lines, None)
        self._due = 0 if whole or self._next is None else self._next.record.prediction_sequence
        self._first: int | None = None

    def check(self, prediction: Prediction) -> None:
        """Look for the request of the next prediction."""
        if self._first is None:
            self._first = prediction.sequence
        self._pass_over(prediction.sequence)
        if prediction.asked is not True or prediction.sequence < self._due:
            return
        line = self._next
        if line is None or line.record.prediction_sequence != prediction.sequence:
            expected = f"a request for the label of prediction {prediction.sequence}"
            self._ledger.differs(self._topic, line and line.source.offset, expected, "none")
            return
        self._ledger.checked[REQUESTS_CHECK] += 1
        wanted = LabelRequest.of(prediction, line.record.sequence)
        if encode(wanted) != line.source.value:
            self._ledger.differs(self._topic, line.source.offset, *field_difference(wanted, line.record))
        self._next = next(self._lines, None)

    def finish(self) -> None:
        """Note the requests that are left."""
        self._pass_over(None)

    def _pass_over(self, before: int | None) -> None:
        """Note requests for predictions before this one, or for any, which none of them asked for."""
        while self._next is not None and (before is None or self._next.record.prediction_sequence < before):
            request, source = self._next
            if request.prediction_sequence >= (self._first or 0):
                found = f"one for prediction {request.prediction_sequence}"
                self._ledger.differs(self._topic, source.offset, "requests that predictions ask for", found)
            self._next = next(self._lines, None)


SHARES_CHECK: Final = "shares of other partitions, each once"


class Shares:
    """Watches over the shares in a partition's outcomes, whose effect on the model is derived elsewhere.

    Parameters
    ----------
    topic
        Where the outcomes are.
    ledger
        Where to note what differs.
    """

    def __init__(self, topic: str, ledger: Ledger) -> None:
        self._topic = topic
        self._ledger = ledger
        self._told: dict[int, int] = {}
        """By other partition, how many of its outcomes are known."""

    def check(self, outcome: Outcome, offset: int) -> None:
        """Look at the next outcome."""
        for share in outcome.shared or ():
            self._ledger.checked[SHARES_CHECK] += 1
            told = self._told.get(share.partition, 0)
            if share.partition == self._ledger.partition or share.since < told:
                self._ledger.differs(
                    self._topic,
                    offset,
                    f"a share of another partition, from its outcome {told} on",
                    f"one of partition {share.partition}, from {share.since} on",
                )
            self._told[share.partition] = share.until
