"""Ridge regression with leave-one-out against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.ridge import fit_dual, fit_primal

RANDOM = np.random.default_rng(7)
FEATURES = RANDOM.standard_normal((30, 8))
KERNEL = FEATURES @ FEATURES.T
LABELS = 1.5 + FEATURES[:, 0] + 0.5 * RANDOM.standard_normal(30)
RIDGES = (1e-3, 0.1, 3.0, 100.0)


def brute_force(n, ridge):
    """Residual of every left-out sample, from a system solved without it."""
    centred = LABELS[:n] - LABELS[:n].mean()
    residuals = []
    for left_out in range(n):
        kept = np.arange(n) != left_out
        system = KERNEL[:n, :n][np.ix_(kept, kept)] + ridge * np.eye(n - 1)
        prediction = KERNEL[left_out, :n][kept] @ np.linalg.solve(system, centred[kept])
        residuals.append(centred[left_out] - prediction)
    return np.array(residuals)


@pytest.mark.parametrize("ridge", RIDGES)
def test_leave_one_out_equals_brute_force_at_every_prefix(ridge):
    sizes = [2, 5, 8, 17, 30]
    for n, fit in zip(
        sizes, fit_dual(KERNEL, LABELS, sizes, ridges=[ridge], name="k"), strict=True
    ):
        assert fit.loo_error == pytest.approx(np.mean(brute_force(n, ridge) ** 2), rel=1e-7)


@pytest.mark.parametrize("ridge", RIDGES)
def test_primal_leave_one_out_equals_brute_force(ridge):
    fit = fit_primal(FEATURES, LABELS, ridges=[ridge], name="k")
    assert fit.loo_error == pytest.approx(np.mean(brute_force(30, ridge) ** 2), rel=1e-7)


@given(
    n=st.integers(2, 30),
    others=st.sets(st.integers(1, 30), max_size=4),
    ridge=st.sampled_from(RIDGES),
)
def test_coefficients_solve_the_system_whatever_the_other_sizes(n, others, ridge):
    sizes = sorted({n} | others)
    fit = fit_dual(KERNEL, LABELS, sizes, ridges=[ridge], name="k")[sizes.index(n)]
    centred = LABELS[:n] - LABELS[:n].mean()
    expected = np.linalg.solve(KERNEL[:n, :n] + ridge * np.eye(n), centred)
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-7, atol=1e-9)
    assert fit.label_mean == LABELS[:n].mean()


def test_primal_equals_dual():
    dual = fit_dual(KERNEL, LABELS, [30], ridges=RIDGES, name="k")[0]
    primal = fit_primal(FEATURES, LABELS, ridges=RIDGES, name="k")
    assert (primal.ridge, primal.label_mean) == (dual.ridge, dual.label_mean)
    np.testing.assert_allclose(primal.coefficients, FEATURES.T @ dual.coefficients, rtol=1e-8)


@pytest.mark.parametrize("form", ["dual", "primal"])
def test_ridge_of_the_smallest_leave_one_out_error_is_taken(form):
    def fit(ridges):
        if form == "dual":
            return fit_dual(KERNEL, LABELS, [30], ridges=ridges, name="k")[0]
        return fit_primal(FEATURES, LABELS, ridges=ridges, name="k")

    alone = [fit([ridge]) for ridge in RIDGES]
    best = min(alone, key=lambda one: one.loo_error)
    assert best.ridge not in (RIDGES[0], RIDGES[-1])
    chosen = fit(RIDGES)
    assert (chosen.ridge, chosen.loo_error) == (best.ridge, best.loo_error)
    np.testing.assert_array_equal(chosen.coefficients, best.coefficients)


def test_inputs_are_not_changed():
    kernel, features = KERNEL.copy(), FEATURES.copy()
    fit_dual(kernel, LABELS, [10, 30], ridges=RIDGES, name="k")
    fit_primal(features, LABELS, ridges=RIDGES, name="k")
    np.testing.assert_array_equal(kernel, KERNEL)
    np.testing.assert_array_equal(features, FEATURES)


@pytest.mark.parametrize("ridges", [[], [1.0, 0.0]])
def test_bad_ridges(ridges):
    with pytest.raises(ValueError, match="ridges must be positive"):
        fit_dual(KERNEL, LABELS, [30], ridges=ridges, name="k")
    with pytest.raises(ValueError, match="ridges must be positive"):
        fit_primal(FEATURES, LABELS, ridges=ridges, name="k")


@pytest.mark.parametrize("sizes", [[], [0, 3], [5, 5], [7, 3], [31]])
def test_bad_sample_sizes(sizes):
    with pytest.raises(ValueError, match="sample size"):
        fit_dual(KERNEL, LABELS, sizes, ridges=[1.0], name="k")


def test_a_system_that_is_singular_to_rounding_is_reported():
    with pytest.raises(NumericalError, match=r"hill kernel: .* ridge 1e-30 is not positive"):
        fit_dual(np.ones((30, 30)), LABELS, [30], ridges=[1e-30], name="hill kernel")
