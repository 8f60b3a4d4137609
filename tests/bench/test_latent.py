from __future__ import annotations

import numpy as np
import pytest

from bench.latent import Prior, expected


@pytest.mark.parametrize("dimensions", [1, 2, 4])
def test_with_known_items_a_user_is_a_bayesian_regression(dimensions: int) -> None:
    rng = np.random.default_rng(3)
    n, prior = 40, Prior(dimensions, spread=1.0, of_user=0.3, of_item=0.0)
    users, items = np.zeros(n, dtype=np.int64), rng.integers(0, 9, n)
    rest, noise = rng.normal(size=n), rng.uniform(0.2, 1.0, n)
    found = expected(users, items, items, rest, noise, prior)
    F = np.random.default_rng(0).standard_normal((items.max() + 1, dimensions))[items]
    for event in (0, 1, 7, n - 1):
        A = F[:event] / noise[:event, None]
        covariance = np.linalg.inv(F[:event].T @ A + np.eye(dimensions) / prior.of_user)
        mean = covariance @ A.T @ rest[:event]
        np.testing.assert_allclose(
            found[event], [F[event] @ mean, F[event] @ covariance @ F[event]], atol=1e-9
        )


def test_an_item_is_updated_given_the_user_as_updated() -> None:
    prior = Prior(1, spread=1.0, of_user=0.3, of_item=0.2)
    nobody = np.zeros(2, dtype=np.int64)
    found = expected(nobody, nobody, nobody, np.array([0.7, 0.0]), np.array([0.5, 0.5]), prior)
    start = float(np.random.default_rng(0).standard_normal(1)[0])
    variance = 0.5 + start * start * 0.3 + 0.3 * 0.2
    user = 0.3 * start * 0.7 / variance
    of_user = 0.3 - (0.3 * start) ** 2 / variance
    variance = 0.5 + start * start * of_user + user * user * 0.2 + of_user * 0.2
    item = start + 0.2 * user * (0.7 - user * start) / variance
    of_item = 0.2 - (0.2 * user) ** 2 / variance
    unsure = item * item * of_user + user * user * of_item + of_user * of_item
    np.testing.assert_allclose(found[1], [user * item, unsure])


def test_items_learn_too() -> None:
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 30, 6000), rng.integers(0, 20, 6000)
    truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    rest = truth[users, items] + 0.3 * rng.normal(size=6000)
    noise = np.full(6000, 0.09)
    found = expected(users, items, items, rest, noise, Prior(2, 0.5, 1.0, 0.5))[:, 0]
    left = rest - found
    assert np.mean(left[4000:] ** 2) < 0.2 < np.mean(rest[4000:] ** 2)


def test_items_of_a_kind_start_alike() -> None:
    n = 6
    users, kinds = np.zeros(n, dtype=np.int64), np.array([0, 0, 1, 1, 0, 1])
    rest, noise = np.ones(n), np.ones(n)
    prior = Prior(2, 1.0, 0.5, 0.1)
    found = expected(users, np.arange(n), kinds, rest, noise, prior)
    one = expected(users[:1], np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), rest, noise, prior)
    np.testing.assert_allclose(found[0], one[0])
    same = [0, 1, 4]
    assert found[same, 0][1] != 0.0
    assert not np.allclose(found[1], found[2])
