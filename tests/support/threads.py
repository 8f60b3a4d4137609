"""Whether other Python threads run while compiled code does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

TRIES = 200


def runs_beside(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, action: Callable[[], object]
) -> bool:
    """Tell whether another thread ran while ``action`` was in the function of this name.

    Threads are only switched where one lets go of the interpreter by itself.
    """
    inside, seen = threading.Event(), threading.Event()
    action()  # what compiles lets go, too
    function = getattr(module, name)

    def watched(*arguments: Any) -> Any:
        inside.set()
        result = function(*arguments)
        inside.clear()
        return result

    def look() -> None:
        while not (seen.is_set() or over.is_set()):
            time.sleep(1e-4)
            if inside.is_set():
                seen.set()

    over = threading.Event()
    thread = threading.Thread(target=look)
    interval = sys.getswitchinterval()
    monkeypatch.setattr(module, name, watched)
    sys.setswitchinterval(1000.0)
    thread.start()
    try:
        for _ in range(TRIES):
            action()
            if seen.is_set():
                return True
        return False
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
