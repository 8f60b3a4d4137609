"""What outcomes have taken over from other partitions: each stretch once, in order, nothing of the own."""

from __future__ import annotations

from typing import Final

from pipeline.audit.ledger import Ledger
from pipeline.records import Outcome

LOOKED_AT: Final = "shares of other partitions, each once"


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
            self._ledger.checked[LOOKED_AT] += 1
            told = self._told.get(share.partition, 0)
            if share.partition == self._ledger.partition or share.since < told:
                self._ledger.differs(
                    self._topic,
                    offset,
                    f"a share of another partition, from its outcome {told} on",
                    f"one of partition {share.partition}, from {share.since} on",
                )
            self._told[share.partition] = share.until
