"""The clock of an input: which timestamps count, and which are of a wrong clock. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord, looks_like
from pipeline.records.names import Fault

JUDGES: Final = 100
"""Messages behind a jump whose majority decides about it. The clock was wrong, too, if those that lie too far
behind outnumber the others by so many."""
_THOUSAND: Final = 1_000


class InputClock:
    """The largest timestamp accepted of an input of a partition, which judges the next ones.

    - A timestamp more than `max_jump` ahead is a jump. It counts if, of the next `JUDGES` messages, more
      confirm it than refute it. Those confirm it that lie at most `max_jump` before it, or after it; others
      refute it, unless they lie too far behind. At the end of the input, fewer decide.
    - A timestamp more than `max_behind` behind is refused, and moves nothing.

    So each verdict follows from the messages in their order, however they are cut into batches.

    Parameters
    ----------
    max_jump, max_behind
        In milliseconds.
    time
        The largest timestamp accepted; None before the first.
    ahead
        The last message's, if it was refused for its jump. At the end of the input, it confirms the next one.
    behind
        By how many the messages refused for lying too far behind outnumber those accepted.

    Examples
    --------
    >>> clock = InputClock(max_jump=1_000, max_behind=2_000, time=50_000)
    >>> clock.judge([90_000])  # waits for the next messages
    []
    >>> [verdict and verdict.fault.value for verdict in clock.judge([7, 90_000, 50_001, 90_000], present=0)]
    ['past', 'future', None, None]
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
        self.ahead, self.behind = None, max(0, self.behind - 1)
        if self.time is not None and time < self.time - self._max_behind:
            self.time, self.behind = time, 0
        self.time = time if self.time is None else max(self.time, time)

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
        self.time, self.ahead, self.behind = int(latest[-1]), None, max(0, self.behind - len(usable))
        return True

    def judge(self, times: Sequence[int], present: int | None = None) -> list[RejectedRecord | None]:
        """Judge messages one after the other, up to a jump that the next messages have yet to confirm.

        Parameters
        ----------
        times
            In milliseconds, `NO_TIMESTAMP` of what cannot be used.
        present
            None where more messages may come. At the end of the input, the time from which a jump counts that
            no message confirms or refutes.

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
                confirmed = self._confirmed(times, number, present)
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
        return self.time is not None and time < self.time - self._max_behind and self.behind < JUDGES

    def _is_jump(self, time: int) -> bool:
        return self.time is not None and time > self.time + self._max_jump

    def _confirmed(self, times: Sequence[int], jump: int, present: int | None) -> bool | None:
        """Whether most messages behind a jump confirm it; None if more have to come."""
        assert self.time is not None
        judges = confirming = refuting = 0
        least, known = times[jump] - self._max_jump, self.time - self._max_behind
        for number in range(jump + 1, len(times)):
            other = times[number]
            if other == NO_TIMESTAMP:
                continue
            judges += 1
            confirming += other >= least
            refuting += known <= other < least
            if judges == JUDGES or max(confirming, refuting) > JUDGES // 2:
                return confirming > refuting
        if present is None:
            return None
        if confirming or refuting:
            return confirming > refuting
        confirms_last = self.ahead is not None and self.ahead <= times[jump] + self._max_jump
        return times[jump] >= present or confirms_last

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
