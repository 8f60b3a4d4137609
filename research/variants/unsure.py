"""OKL that does not learn from mistakes of which it was certain."""

from __future__ import annotations

from research.rivals.graphs import OKL


class UnsureOKL(OKL):
    """OKL that learns from a mistake only if |f_x| <= tau_x / 2, where `OKSG` queries with probability 1.

    It is given every label, so the comparison with OKL and OKSG shows whether the gain of OKSG comes from the
    mistakes that it does not learn. tau is that of Yang and Li, Eq. (3); an event costs as much as with OKSG.

    Examples
    --------
    >>> learner = UnsureOKL([[1.0, 0.5], [0.5, 1.0]], ridge=1.0)
    >>> learner.learn_one(0, -1)
    1.0
    >>> learner.predict_one(0)
    -0.5
    """

    def _triggers_update(self, node: int, y: float, score: float) -> bool:
        _, rest = self._project(node)
        return super()._triggers_update(node, y, score) and abs(score) <= 0.5 * rest / self._ridge
