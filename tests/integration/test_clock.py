from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from tests.integration.harness import Message, Pipeline, until

HOUR = 3_600


class WallClock:
    """What the wall clock of a worker shows, by a file that it reads."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "seconds-wrong"
        self.set_wrong(0)

    @property
    def program(self) -> list[str]:
        """`forks` under this clock."""
        return [sys.executable, str(Path(__file__).with_name("stepped.py")), str(self._file)]

    def set_wrong(self, seconds: int) -> None:
        """Let it be ahead by so much; behind, if that is negative."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)


@pytest.mark.slow
def test_steps_of_the_wall_clock_do_not_show(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """Events of now never lie in the future, and a window closes in its time in either direction."""
    clock = WallClock(tmp_path)
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path)
    pipeline.program = clock.program
    pipeline.environment = {
        "FORKS_JOIN__WINDOW": "2s",
        "FORKS_JOIN__IDLE_ADVANCE": "1s",
    }
    topics = pipeline.topics
    begin = int(time.time() * 1000)

    def event(number: int, *, labelled: bool) -> None:
        """The label first, so that it cannot come too late."""
        now = int(time.time() * 1000)
        interaction, label = (
            KuaiRecInteraction(number, 7, 3, now, 900),
            WatchLabel(number, 7, 3, now, 900, 0.9),
        )
        if labelled:
            pipeline.produce([Message(topics.labels, b"7", encode(label), now)])
        pipeline.produce([Message(topics.interactions, b"7", encode(interaction), now)])

    with pipeline.worker() as worker, pipeline.follow(topics.outcomes) as follower:
        for step, seconds in enumerate((0, -6 * HOUR, 6 * HOUR)):
            clock.set_wrong(seconds)
            event(2 * step, labelled=True)
            event(2 * step + 1, labelled=False)
            until(partial(follower.reached, 2 * step + 2), f"outcomes, {seconds} s wrong", worker)
    assert pipeline.read(topics.dead_letters) == []
    assert [o["status"] for o in pipeline.read_json(topics.outcomes)] == 3 * ["labelled", "expired"]
    states = [w.value for w in pipeline.read(topics.checkpoints) if w.key == b"0/state"]
    assert json.loads(states[-1] or b"")["stream_time"] - begin < HOUR * 1000
