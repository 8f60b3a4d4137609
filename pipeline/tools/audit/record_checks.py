"""Check label requests and shares while predictions and outcomes are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.config.topics import Topics
from pipeline.records.encoding import encode
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.tools.audit.differences import AuditResult, field_difference
from pipeline.tools.audit.topic_records import DecodedRecord

REQUESTS_CHECK: Final = "label requests compared with their prediction"
SHARES_CHECK: Final = "shares of other partitions, each once"


class LabelRequestCheck:
    """Comparison of label requests with the predictions that they were made for.

    Parameters
    ----------
    requests
        Label requests in sequence.
    complete
        Whether retention has deleted no request. If it has, requests are expected only from the
        prediction of the first remaining request on.
    topics
        Names of the topics.
    result
        Result to add differences to.
    """

    def __init__(
        self,
        requests: Iterator[DecodedRecord[LabelRequest]],
        complete: bool,
        topics: Topics,
        result: AuditResult,
    ) -> None:
        self._requests = requests
        self._topic = topics.label_requests
        self._type = OutputTypes.of(topics.stream).label_request
        self._result = result
        self._next = next(requests, None)
        self._first_expected = 0 if complete or self._next is None else self._next.record.prediction_number
        self._first: int | None = None

    def check(self, prediction: Prediction) -> None:
        """Compare the next prediction with its label request, if it has one."""
        if self._first is None:
            self._first = prediction.number
        self._skip_to(prediction.number)
        if prediction.asked is not True or prediction.number < self._first_expected:
            return
        decoded = self._next
        if decoded is None or decoded.record.prediction_number != prediction.number:
            expected = f"a request for the label of {_named(prediction.sequence, prediction)}"
            self._result.add_difference(self._topic, decoded and decoded.source.offset, expected, "none")
            return
        self._result.checked[REQUESTS_CHECK] += 1
        derived = self._type.of(prediction, decoded.record.sequence)
        if encode(derived) != decoded.source.value:
            self._result.add_difference(
                self._topic, decoded.source.offset, *field_difference(derived, decoded.record)
            )
        self._next = next(self._requests, None)

    def finish(self) -> None:
        """Report the requests that follow the last prediction."""
        self._skip_to(None)

    def _skip_to(self, before: int | None) -> None:
        """Report the next requests for predictions below a number (None: for any), which asked for none."""
        while self._next is not None and (before is None or self._next.record.prediction_number < before):
            request, source = self._next
            if request.prediction_number >= (self._first or 0):
                found = f"one for {_named(request.prediction_sequence, request)}"
                self._result.add_difference(
                    self._topic, source.offset, "requests that predictions ask for", found
                )
            self._next = next(self._requests, None)


def _named(sequence: int, record: Prediction | LabelRequest) -> str:
    """Name a prediction of this sequence, given its record or its request's."""
    return f"prediction {sequence}" + "".join(f", position {each}" for each in record.in_slate)


class ShareCheck:
    """Check that an outcome holds shares of other partitions only, and each share once.

    Their effect on the model is checked by `Derivation`.

    Parameters
    ----------
    topic
        Topic of the outcomes.
    result
        Result to add differences to.
    """

    def __init__(self, topic: str, result: AuditResult) -> None:
        self._topic = topic
        self._result = result
        self._known: dict[int, int] = {}
        """Number of outcomes that the shares have covered so far, by partition."""

    def check(self, outcome: Outcome, offset: int) -> None:
        """Check the shares of the next outcome."""
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
