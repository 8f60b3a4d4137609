"""What an event costs the learner, and what it costs others: microseconds to predict and then learn it.

The kernel part is the `paper` preset on 212 columns, most of them of a user's and a video's block, between
two changes of the map. The cost of a change is beside it. Ours learns events in one call; plain NumPy
predicts and learns one by one, as learners with River's or scikit-learn's habits do (``plain``), or both at
once with the features worked out only once (``plain_fused``).
"""

from __future__ import annotations

import dataclasses
import time
from statistics import median
from typing import Any, Self

import numpy as np
import psutil
from numpy.typing import NDArray

from bench import other_libraries
from bench.options import Options
from bench.timing import microseconds
from bench.workload import VIDEOS, Workload
from forks import Forks, ForksSettings
from forks.arrays import FloatArray
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tags import TagLists
from pipeline.records.fields import FEATURES_LENGTH
from research.variants.plain import PlainForks

COLUMNS = 212
EVENTS = 20_000
RUNS = 15
SIZES = {100: (15, 10), 200: (30, 20), 500: (75, 50)}  # B: (s_m, k)
PLAIN_EVENTS = 500
CHANGES = 10
PRACTICAL_SIZES = {"budget": 100, "landmarks": 30, "rank": 20}
FEW = 2_000
TAGS = 31
MAX_ENTITIES = 100_000
FLAT_EVENTS = 10_000_000
FLAT_PART = 100_000


def run(options: Options) -> dict[str, Any]:
    """Return microseconds an event by size, growth, rivals, and memory over many entities."""
    runs = options.runs or RUNS
    workload = Workload.of(COLUMNS, EVENTS)
    result: dict[str, Any] = {"columns": COLUMNS, "runs": runs}
    for part in (_kernel_part, _practical):
        result |= part(workload, runs)
        options.say(str(result))
    result["rivals"] = other_libraries.costs(workload, runs)
    options.say(f"rivals: {result['rivals']}")
    result["growth"] = _growth(workload, runs)
    options.say(f"growth: {result['growth']}")
    result["million_entities"] = _million_entities(options)
    return result


def _kernel_part(workload: Workload, runs: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for budget, (landmarks, rank) in SIZES.items():
        settings = workload.settings(budget=budget, landmarks=landmarks, rank=rank)
        ours = _entities(workload, settings, runs)
        plain, fused = _plain(workload, settings, runs)
        figures |= {
            f"us_per_event_{budget}": ours,
            f"us_per_event_{budget}_whole_rows": _whole_rows(workload, settings, runs),
            f"us_per_change_{budget}": _change(workload, settings, runs),
            f"plain_us_per_event_{budget}": plain,
            f"plain_over_ours_{budget}": round(plain / ours, 1),
            f"plain_fused_us_per_event_{budget}": fused,
            f"plain_fused_over_ours_{budget}": round(fused / ours, 1),
        }
    return figures


def _entities(workload: Workload, settings: ForksSettings, runs: int) -> float:
    learner, tables = workload.learner(settings), workload.tables(settings)

    def play() -> None:
        events = tables.events(workload.numbers, workload.varying)
        learner.predict_and_learn_many(events, workload.y)

    return microseconds(play, len(workload.y), runs)


def _whole_rows(workload: Workload, settings: ForksSettings, runs: int) -> float:
    """Return the cost without entities: plain kernel, all columns for every event."""
    rows = workload.rows(EVENTS // 10)
    learner = workload.learner(dataclasses.replace(settings, entity_blocks=()))
    y = workload.y[: len(rows)]
    return microseconds(lambda: learner.predict_and_learn_many(rows, y), len(rows), runs)


def _change(workload: Workload, settings: ForksSettings, runs: int) -> float:
    """Return microseconds of a change of the map: of a bounded learner with a change at every event."""
    changing = dataclasses.replace(settings, cycle=1, bounded=True)
    learner = Forks.from_state(changing, workload.learner(settings).state())
    rows, y = workload.rows(CHANGES), workload.y[:CHANGES]
    return microseconds(lambda: learner.learn_many(rows, y), CHANGES, runs)


def _plain(workload: Workload, settings: ForksSettings, runs: int) -> tuple[float, float]:
    """Return the costs of plain NumPy, prediction and learning apart and fused.

    Its scores have to be those of the compiled learner first.
    """
    learner, rows, y = workload.learner(settings), workload.rows(PLAIN_EVENTS), workload.y[:PLAIN_EVENTS]
    apart, fused = PlainForks(learner), PlainForks(learner)

    def play() -> list[float]:
        scores = []
        for x, label in zip(rows, y, strict=True):
            scores.append(apart.predict_one(x))
            apart.learn_one(x, label)
        return scores

    def play_fused() -> list[float]:
        return [fused.predict_and_learn(x, label) for x, label in zip(rows, y, strict=True)]

    expected = learner.predict_and_learn_many(rows, y)
    for scores in (play(), play_fused()):
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)
    return microseconds(play, PLAIN_EVENTS, runs), microseconds(play_fused, PLAIN_EVENTS, runs)


def _practical(workload: Workload, runs: int) -> dict[str, float]:
    """Return costs of the practical preset on what the statistics give, changes of the map included.

    The learner alone, statistics alone, and plays through both, in one timing: what the statistics say of
    each play is what the learner gets.
    """
    plays = _Plays.of(workload)
    learner = Forks(ForksSettings.practical(FEATURES_LENGTH, **PRACTICAL_SIZES))
    X = plays.features()
    for _ in range(2):  # past the warm-up's short cycles
        learner.learn_many(X, workload.y)
    few = list(zip(X[:FEW], workload.y[:FEW], strict=True))

    def one_by_one() -> None:
        for x, y in few:
            learner.predict_one(x)
            learner.learn_one(x, y)

    def alone() -> object:
        return learner.predict_and_learn_many(X, workload.y)

    def whole() -> object:
        return learner.predict_and_learn_many(plays.features(), workload.y)

    return {
        "us_per_event_practical": microseconds(alone, EVENTS, runs),
        "us_per_event_practical_one_by_one": microseconds(one_by_one, FEW, runs),
        "us_per_event_statistics": microseconds(plays.features, EVENTS, runs),
        "us_per_event_statistics_one_by_one": microseconds(plays.one_by_one, FEW, runs),
        "us_per_event_practical_whole": microseconds(whole, EVENTS, runs),
    }


@dataclasses.dataclass(frozen=True)
class _Plays:
    """Plays whose labels come at once, and statistics that go through them."""

    statistics: RunningStatistics
    users: list[int]
    videos: list[int]
    watched: NDArray[np.bool_]
    ratios: FloatArray

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """Return the workload's plays, of videos with one to three tags, watched where its label is 1."""
        chance = np.random.default_rng(1)
        tags = TagLists({n: chance.integers(0, TAGS, chance.integers(1, 4)).tolist() for n in range(VIDEOS)})
        users, videos = workload.numbers.T.tolist()
        ratios = np.where(workload.y > 0, 1.0, 0.3)
        return cls(RunningStatistics(MAX_ENTITIES, tags), users, videos, workload.y > 0, ratios)

    def features(self) -> FloatArray:
        """Ask for all plays in turn and count their labels; return their features, (n, features)."""
        order = np.arange(2 * len(self.users)).reshape(2, -1).T.ravel()
        return self.statistics.run(order, [self.users, self.videos], self.watched, self.ratios)

    def one_by_one(self) -> None:
        """Do the same for the first of them, a call for each question and answer."""
        labels = self.watched[:FEW].tolist()
        for user, video, label in zip(self.users[:FEW], self.videos[:FEW], labels, strict=True):
            self.statistics.features((user, video))
            self.statistics.update((user, video), label, 1.0)


def _growth(workload: Workload, runs: int) -> dict[str, dict[int, float]]:
    """Return the cost as one size grows and the others stay: B = 200, s_m = 30, k = 20, 212 columns."""

    def cost(**changes: int) -> float:
        sizes = {"budget": 200, "landmarks": 30, "rank": 20} | changes
        return _entities(workload, workload.settings(**sizes), runs)

    def wide(columns: int) -> float:
        other = Workload.of(columns, EVENTS)
        return _entities(other, other.settings(budget=200, landmarks=30, rank=20), runs)

    return {
        "budget": {n: cost(budget=n) for n in (100, 200, 400)},
        "landmarks": {n: cost(landmarks=n) for n in (20, 40, 80, 160)},
        "rank": {n: cost(landmarks=80, rank=n) for n in (10, 20, 40, 80)},
        "columns": {n: wide(n) for n in (27, 53, 106, 212, 424)},
    }


def _million_entities(options: Options) -> dict[str, float]:
    """Return cost and memory of ten million events of a million users, a tenth of them kept at a time."""
    workload = Workload.of(27, FLAT_PART, users=1_000_000)
    settings = workload.settings(budget=100, landmarks=15, rank=10, cycle=2000, bounded=True)
    learner, tables = workload.learner(settings), workload.tables(settings)
    chance = np.random.default_rng(2)
    process = psutil.Process()
    memory, costs = [], []
    numbers = workload.numbers.copy()
    for part in range(FLAT_EVENTS // FLAT_PART):
        numbers[:, 0] = chance.integers(0, len(workload.users), FLAT_PART)
        start = time.perf_counter()
        learner.predict_and_learn_many(tables.events(numbers, workload.varying), workload.y)
        costs.append(1e6 * (time.perf_counter() - start) / FLAT_PART)
        memory.append(process.memory_info().rss / 2**20)
        if part % 20 == 0:
            options.say(f"{(part + 1) * FLAT_PART:,} events of a million users: {memory[-1]:.0f} MiB")
    warm = len(memory) // 10
    return {
        "events": FLAT_EVENTS,
        "us_per_event": round(median(costs), 3),
        "mib_after_warm_up": round(memory[warm], 1),
        "mib_at_the_end": round(memory[-1], 1),
    }
