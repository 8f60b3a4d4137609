"""Checks of label requests and shares while records are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.records.encoding import encode
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.tools.audit.differences import AuditResult, field_difference
from pipeline.tools.audit.topic_records import DecodedRecord

REQUESTS_CHECK: Final = "label requests compared with their prediction"


class LabelRequestCheck:
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

    def __init__(
        self, requests: Iterator[DecodedRecord[LabelRequest]], complete: bool, topic: str, result: AuditResult
    ) -> None:
        self._requests = requests
        self._topic = topic
        self._result = result
        self._next = next(requests, None)
        self._first_expected = 0 if complete or self._next is None else self._next.record.prediction_sequence
        self._first: int | None = None

    def check(self, prediction: Prediction) -> None:
        """Look for the request of the next prediction."""
        if self._first is None:
            self._first = prediction.sequence
        self._skip_to(prediction.sequence)
        if prediction.asked is not True or prediction.sequence < self._first_expected:
            return
        decoded = self._next
        if decoded is None or decoded.record.prediction_sequence != prediction.sequence:
            expected = f"a request for the label of prediction {prediction.sequence}"
            self._result.add_difference(self._topic, decoded and decoded.source.offset, expected, "none")
            return
        self._result.checked[REQUESTS_CHECK] += 1
        wanted = LabelRequest.of(prediction, decoded.record.sequence)
        if encode(wanted) != decoded.source.value:
            self._result.add_difference(
                self._topic, decoded.source.offset, *field_difference(wanted, decoded.record)
            )
        self._next = next(self._requests, None)

    def finish(self) -> None:
        """Note the requests that are left."""
        self._skip_to(None)

    def _skip_to(self, before: int | None) -> None:
        """Note requests for predictions before this one, or for any, which none of them asked for."""
        while self._next is not None and (before is None or self._next.record.prediction_sequence < before):
            request, source = self._next
            if request.prediction_sequence >= (self._first or 0):
                found = f"one for prediction {request.prediction_sequence}"
                self._result.add_difference(
                    self._topic, source.offset, "requests that predictions ask for", found
                )
            self._next = next(self._requests, None)


SHARES_CHECK: Final = "shares of other partitions, each once"


class ShareCheck:
    """Watches over the shares in a partition's outcomes, whose effect on the model is derived elsewhere.

    Parameters
    ----------
    topic
        Where the outcomes are.
    ledger
        Where to note what differs.
    """

    def __init__(self, topic: str, result: AuditResult) -> None:
        self._topic = topic
        self._result = result
        self._known: dict[int, int] = {}
        """By other partition, how many of its outcomes are known."""

    def check(self, outcome: Outcome, offset: int) -> None:
        """Look at the next outcome."""
        for share in outcome.shared or ():
            self._result.checked[SHARES_CHECK] += 1
            known = self._known.get(share.partition, 0)
            if share.partition == self._result.partition or share.since < known:
                self._result.add_difference(
                    self._topic,
                    offset,
                    f"a share of another partition, from its outcome {known} on",
                    f"one of partition {share.partition}, from {share.since} on",
                )
            self._known[share.partition] = share.until
