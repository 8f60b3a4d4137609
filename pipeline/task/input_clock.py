"""The clock of an input: which timestamps count, and which are of a wrong clock. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord, looks_like
from pipeline.records.names import Fault

MOST_BEHIND: Final = 100
"""Messages in a row that are refused for lying too far behind. Then the clock was wrong, not theirs."""
_THOUSAND: Final = 1_000


class InputClock:
    """The largest timestamp accepted of an input of a partition, which judges the next ones.

    - A timestamp more than `max_jump` ahead is a jump. It counts if the next message confirms it: one that
      lies at most `max_jump` before it, or after it. Any other refutes it, unless it is too far behind.
    - A timestamp more than `max_behind` behind is refused, and moves nothing.

    So each verdict follows from the messages in their order, however they are cut into batches.

    Parameters
    ----------
    max_jump, max_behind
        In milliseconds.
    time
        The largest timestamp accepted; None before the first.
    ahead
        The last message's, if it was refused for its jump. The next message may still confirm it.
    behind
        How many messages in a row were refused for lying too far behind.

    Examples
    --------
    >>> clock = InputClock(max_jump=1_000, max_behind=2_000, time=50_000)
    >>> [verdict and verdict.fault.value for verdict in clock.judge([7, 90_000, 50_001, 90_000, 90_001])]
    ['past', 'future', None, None, None]
    >>> clock.judge([150_000])  # waits for the next message
    []
    """

    __slots__ = ("_max_behind", "_max_jump", "ahead", "behind", "time")

    def __init__(
        self,
        max_jump: int,
        max_behind: int,
        time: int | None = None,
        ahead: int | None = None,
        behind: int = 0,
    ) -> None:
        self._max_jump, self._max_behind = max_jump, max_behind
        self.time, self.ahead, self.behind = time, ahead, behind

    def copy(self) -> InputClock:
        """Return another one that stands where this one does."""
        return InputClock(self._max_jump, self._max_behind, self.time, self.ahead, self.behind)

    def accept(self, time: int) -> None:
        """Take over a timestamp that counts."""
        if self.time is None or not self.time - self._max_behind <= time <= self.time:
            self.time = time
        self.ahead, self.behind = None, 0

    def refuse(self, time: int) -> None:
        """Note a timestamp that was refused: for its jump, or because it lies too far behind."""
        if self.time is None or time > self.time:
            self.ahead = time
        else:
            self.behind += 1

    def accept_all(self, times: NDArray[np.int64]) -> bool:
        """Take over the timestamps of messages, unless one of them is a jump or too far behind.

        Parameters
        ----------
        times
            In milliseconds, `NO_TIMESTAMP` of what cannot be used; shape (n,).

        Returns
        -------
        bool
            Whether they were taken over, with what `judge` would do.
        """
        usable = times[times != NO_TIMESTAMP]
        if not len(usable):
            return True
        latest = np.maximum.accumulate(usable)
        if self.time is not None:
            latest = np.maximum(latest, self.time)
        steps = usable - np.concatenate([[usable[0] if self.time is None else self.time], latest[:-1]])
        if steps.min() < -self._max_behind or steps.max() > self._max_jump:
            return False
        self.time, self.ahead, self.behind = int(latest[-1]), None, 0
        return True

    def judge(self, times: Sequence[int], unconfirmed: bool | None = None) -> list[RejectedRecord | None]:
        """Judge messages one after the other, up to a jump that the next message has yet to confirm.

        Parameters
        ----------
        times
            In milliseconds, `NO_TIMESTAMP` of what cannot be used.
        unconfirmed
            Whether a jump counts behind which no message confirms or refutes it; None to wait for one.

        Returns
        -------
        list
            For each message that is decided, why it is refused; None of the others, and of what could not be
            used before.
        """
        verdicts = list[RejectedRecord | None]()
        for number, time in enumerate(times):
            refused = None
            if time == NO_TIMESTAMP:
                pass
            elif self._is_past(time):
                refused = self._past(time)
                self.refuse(time)
            elif self._is_jump(time):
                confirmed = self._confirmed(times, number)
                if confirmed is None:
                    confirmed = unconfirmed
                if confirmed is None:
                    break
                if confirmed:
                    self.accept(time)
                else:
                    refused = self._future(time)
                    self.refuse(time)
            else:
                self.accept(time)
            verdicts.append(refused)
        return verdicts

    def _is_past(self, time: int) -> bool:
        return self.time is not None and time < self.time - self._max_behind and self.behind < MOST_BEHIND

    def _is_jump(self, time: int) -> bool:
        """Whether a timestamp is a jump, unless it confirms the one that was refused last."""
        return (
            self.time is not None
            and time > self.time + self._max_jump
            and (self.ahead is None or time < self.ahead - self._max_jump)
        )

    def _confirmed(self, times: Sequence[int], jump: int) -> bool | None:
        """Whether the messages behind a jump confirm it; None if they do not say."""
        assert self.time is not None
        silent = 0
        for number in range(jump + 1, len(times)):
            other = times[number]
            if other == NO_TIMESTAMP:
                continue
            if other >= times[jump] - self._max_jump:
                return True
            silent += 1
            if other >= self.time - self._max_behind or silent == MOST_BEHIND:
                return False
        return None

    def _past(self, time: int) -> RejectedRecord:
        assert self.time is not None
        return RejectedRecord(
            Fault.PAST,
            f"the timestamp {time} lies {self.time - time} ms before the latest one; what is more than "
            f"join.max_jump and join.window ({self._max_behind} ms) behind counts as a wrong clock"
            + (looks_like("1000 times as much", "seconds") if self._fits(time * _THOUSAND) else ""),
        )

    def _future(self, time: int) -> RejectedRecord:
        assert self.time is not None
        return RejectedRecord(
            Fault.FUTURE,
            f"the timestamp {time} lies {time - self.time} ms after the one before it; a jump beyond "
            f"join.max_jump ({self._max_jump} ms) counts as a wrong clock unless the next message confirms it"
            + (looks_like("a thousandth of it", "microseconds") if self._fits(time // _THOUSAND) else ""),
        )

    def _fits(self, time: int) -> bool:
        return self.time is not None and abs(time - self.time) <= self._max_jump
