"""The tags of each video, packed so that compiled code can read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import Id


class TagLists:
    """The tags of each video.

    Parameters
    ----------
    tags
        The numbers of each video's tags, from 0. A number that occurs twice counts once.

    Attributes
    ----------
    count
        One more than the largest number of all tags.
    packed
        The lists one after the other, shape (numbers,), int64: the length of a list, then its tags,
        ascending. The empty list is at 0.

    Examples
    --------
    >>> lists = TagLists({"a": [8, 3], "b": [8]})
    >>> lists.packed.tolist(), lists.find("a"), lists.find("b"), lists.find("unknown")
    ([0, 2, 3, 8, 1, 8], 1, 4, 0)
    """

    def __init__(self, tags: Mapping[Id, Collection[int]]) -> None:
        self._positions: dict[Id, int] = {}
        packed = [0]
        for video, numbers in tags.items():
            own = sorted(set(numbers))
            self._positions[video] = len(packed)
            packed += [len(own), *own]
        self.count = 1 + max((tag for numbers in tags.values() for tag in numbers), default=-1)
        self.packed: NDArray[np.int64] = np.array(packed, dtype=np.int64)

    def find(self, video: object) -> int:
        """Return the position of the video's list in `packed`; 0, an empty list, if the video is unknown."""
        return self._positions.get(video, 0)  # type: ignore[call-overload,no-any-return]  # what is no video is unknown
