from __future__ import annotations

import signal
from threading import Event

import pytest

from pipeline.cli.signals import stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_to_stop_and_the_second_is_pythons_own_again(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = Event()
    with stop_on_signals(stop.set):
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before
