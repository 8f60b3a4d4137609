from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from forks import Forks, ForksSettings
from forks.algorithm.feature_map import FeatureMap, build_map
from forks.algorithm.sketch import KernelSketch
from forks.algorithm.tisvd import Factors
from forks.linalg.blas import limit_to_one_thread, on_one_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_function_runs_on_one_thread_and_gives_the_others_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert on_one_thread(blas_threads)() == {1}
        assert blas_threads() == {2}


def test_it_does_so_in_any_thread() -> None:
    alone = on_one_thread(blas_threads)
    with threadpool_limits(2, user_api="blas"):
        pass  # and leaves nobody in charge
    assert alone() == {1}
    with ThreadPoolExecutor(1) as other:
        assert other.submit(alone).result() == {1}
    assert alone() == {1}


def test_a_process_can_be_limited_for_good() -> None:
    with threadpool_limits(2, user_api="blas"):
        limit_to_one_thread()
        assert blas_threads() == {1}
        assert on_one_thread(blas_threads)() == {1}
        assert blas_threads() == {1}


def test_the_map_is_changed_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def build(sketch: KernelSketch, factors: Factors) -> FeatureMap:
        seen.append(blas_threads())
        return build_map(sketch, factors)

    monkeypatch.setattr("forks.algorithm.sketched_kernel.build_map", build)
    X = np.random.default_rng(0).normal(size=(300, 2))
    with threadpool_limits(2, user_api="blas"):
        Forks(ForksSettings.practical(2, budget=10, cycle=50)).learn_many(X, np.sign(X[:, 0]))
    assert seen[2:]
    assert all(threads == {1} for threads in seen)
