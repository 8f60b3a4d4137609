"""Random numbers that are a function of what they are for, so that no generator state is kept."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Purpose(IntEnum):
    """What draws are for: draws for different purposes are independent."""

    SJLT_ROW = 1
    FIRST_LANDMARKS = 2
    LANDMARK_ENTRY = 3
    LANDMARK_SUCCESSOR = 4
    EVICTION = 6


def draws(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit integers for the ``number``-th use with ``purpose``.

    They are Philox's raw output (its stream is fixed for ever by NumPy's compatibility policy, the
    distributions made from it are not), keyed by seed and purpose, at a counter that starts with
    ``number``.

    Examples
    --------
    >>> bool((draws(1, Purpose.SJLT_ROW, 5, 3) == draws(1, Purpose.SJLT_ROW, 5, 3)).all())
    True
    """
    key = np.array([seed, purpose], dtype=np.uint64)
    counter = np.array([0, 0, 0, number], dtype=np.uint64)
    raw: NDArray[np.uint64] = np.random.Philox(key=key, counter=counter).random_raw(count)
    return raw
