from __future__ import annotations

import numpy as np
from scipy.linalg import sqrtm

from forks.algorithm.carry_over import carry_over, forget, transfer
from forks.algorithm.newton import NewtonState

RNG = np.random.default_rng(0)
PHI = RNG.normal(size=(30, 4))  # stored points under the old map
HALF = RNG.normal(size=(7, 7))
NEWTON = NewtonState(
    RNG.normal(size=7), np.linalg.inv(HALF @ HALF.T + np.eye(7)).astype(np.float64)
)  # 3 linear features


def test_nothing_changes_with_a_map_that_does_not_change() -> None:
    T = transfer(PHI, PHI)
    np.testing.assert_allclose(T, np.eye(4), atol=1e-12)
    carried = carry_over(NEWTON, T, alpha=1.0)
    np.testing.assert_allclose(carried.weights, NEWTON.weights, atol=1e-12)
    np.testing.assert_allclose(carried.inverse_hessian, NEWTON.inverse_hessian, atol=1e-12)


def test_a_rotated_map_predicts_the_same_with_the_same_uncertainty() -> None:
    rotation = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    new = PHI @ rotation
    carried = carry_over(NEWTON, transfer(PHI, new), alpha=1.0)
    np.testing.assert_allclose(new @ carried.weights[3:], PHI @ NEWTON.weights[3:], atol=1e-10)
    z_old, z_new = np.append(np.ones(3), PHI[0]), np.append(np.ones(3), new[0])
    before = z_old @ NEWTON.inverse_hessian @ z_old
    np.testing.assert_allclose(z_new @ carried.inverse_hessian @ z_new, before, atol=1e-10)


def test_directions_that_the_old_map_lacked_get_their_prior_variance() -> None:
    old = PHI.copy()
    old[:, 3] = 0.0
    T = transfer(old, PHI)
    carried = carry_over(NEWTON, T, alpha=0.5)
    np.testing.assert_allclose(carried.inverse_hessian[6, 6], 1 / 0.5, atol=1e-10)
    np.testing.assert_allclose(carried.inverse_hessian[6, :6], 0.0, atol=1e-10)
    np.testing.assert_allclose(carried.inverse_hessian[:6, :6], NEWTON.inverse_hessian[:6, :6], atol=1e-10)


def test_everything_is_carried_over_by_the_formula_on_the_whole() -> None:
    T = RNG.normal(size=(4, 4))
    whole = np.eye(7)
    whole[3:, 3:] = T
    lost = np.eye(4) - T @ T.T
    absolute = sqrtm(lost @ lost).real  # a matrix and its absolute value are twice its positive part
    expected = whole @ NEWTON.inverse_hessian @ whole.T
    expected[3:, 3:] += (lost + absolute) / 2 / 0.3
    carried = carry_over(NEWTON, T, alpha=0.3)
    np.testing.assert_allclose(carried.weights, whole @ NEWTON.weights, atol=1e-12)
    np.testing.assert_allclose(carried.inverse_hessian, expected, rtol=1e-7, atol=1e-7)


def test_the_linear_part_is_kept_to_the_bit() -> None:
    carried = carry_over(NEWTON, RNG.normal(size=(4, 4)), alpha=1.0)
    assert (carried.weights[:3] == NEWTON.weights[:3]).all()
    np.testing.assert_allclose(
        carried.inverse_hessian[:3, :3], NEWTON.inverse_hessian[:3, :3], rtol=1e-14, atol=1e-16
    )


def test_the_inverse_hessian_stays_symmetric_and_positive() -> None:
    newton = NEWTON
    for _ in range(20):
        newton = carry_over(newton, RNG.normal(size=(4, 4)) / 2, alpha=1.0)
        assert (newton.inverse_hessian == newton.inverse_hessian.T).all()
        assert np.linalg.eigvalsh(newton.inverse_hessian).min() > 0


def test_directions_that_the_stored_points_hardly_show_carry_nothing() -> None:
    new = PHI.copy()
    new[:, 3] *= 1e-6
    assert np.abs(transfer(PHI, new)).max() < 10


def test_forgetting_scales_the_inverse_hessian_up_to_the_prior_and_no_further() -> None:
    values, vectors = np.linalg.eigh(NEWTON.inverse_hessian)
    forgot = forget(NEWTON, 0.5, alpha=1 / np.median(values))
    assert (forgot.weights == NEWTON.weights).all()
    assert (forgot.inverse_hessian == forgot.inverse_hessian.T).all()
    expected = np.where(values < np.median(values), np.minimum(2 * values, np.median(values)), values)
    np.testing.assert_allclose(forgot.inverse_hessian, (vectors * expected) @ vectors.T, atol=1e-12)


def test_nothing_is_forgotten_where_all_is_kept() -> None:
    assert forget(NEWTON, 1.0, alpha=0.001) is NEWTON


def test_directions_surer_than_the_prior_forget_by_the_same_share() -> None:
    forgot = forget(NEWTON, 0.25, alpha=1e-9)
    np.testing.assert_allclose(forgot.inverse_hessian, 4 * NEWTON.inverse_hessian, rtol=1e-12)


def test_forgetting_is_the_same_in_weights_scaled_to_one_prior() -> None:
    alpha = np.where(np.arange(len(NEWTON.weights)) < 2, 30.0, 0.5)
    scale = np.outer(np.sqrt(alpha), np.sqrt(alpha))
    scaled = NEWTON._replace(inverse_hessian=NEWTON.inverse_hessian * scale)
    expected = forget(scaled, 0.3, alpha=1.0).inverse_hessian / scale
    np.testing.assert_allclose(forget(NEWTON, 0.3, alpha).inverse_hessian, expected, rtol=1e-9, atol=1e-12)


def test_forgetting_leaves_the_prior_as_it_is() -> None:
    prior = NewtonState.prior(4, np.array([30.0, 30.0, 0.5, 0.5]))
    forgot = forget(prior, 0.1, np.array([30.0, 30.0, 0.5, 0.5]))
    np.testing.assert_allclose(forgot.inverse_hessian, prior.inverse_hessian, rtol=1e-12)


def test_one_precision_for_all_has_the_bits_of_a_number() -> None:
    one, other = forget(NEWTON, 0.3, 0.7), forget(NEWTON, 0.3, np.full(len(NEWTON.weights), 0.7))
    assert (one.inverse_hessian == other.inverse_hessian).all()
