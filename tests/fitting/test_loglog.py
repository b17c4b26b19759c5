import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from spectral_laws.errors import NoFitError, NumericalError
from spectral_laws.fitting.loglog import fit_loglog

POSITIVE = st.floats(1e-6, 1e6)


def noisy_power_law(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=n))
    return x, 3.0 * x**1.7 * np.exp(0.3 * rng.normal(size=n))


def test_agrees_with_scipy_linregress():
    x, y = noisy_power_law()
    fit, oracle = fit_loglog(x, y), linregress(np.log(x), np.log(y))
    assert fit.slope == pytest.approx(oracle.slope, rel=1e-12)
    assert fit.intercept == pytest.approx(oracle.intercept, rel=1e-12)
    assert fit.r2 == pytest.approx(oracle.rvalue**2, rel=1e-12)
    assert fit.stderr == pytest.approx(oracle.stderr, rel=1e-12)
    assert (fit.n_used, fit.n_dropped) == (40, 0)


@given(
    st.lists(POSITIVE, min_size=5, max_size=30, unique=True),
    st.floats(-4, 4),
    st.floats(-3, 3),
)
def test_returns_the_exponent_of_an_exact_power_law(xs, slope, intercept):
    x = np.array(xs)
    if np.ptp(np.log(x)) < 1e-3:
        return
    fit = fit_loglog(x, np.exp(intercept) * x**slope)
    assert fit.slope == pytest.approx(slope, abs=1e-8)
    assert fit.intercept == pytest.approx(intercept, abs=1e-7)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_slope_does_not_depend_on_units(a, b):
    x, y = noisy_power_law()
    fit, scaled = fit_loglog(x, y), fit_loglog(a * x, b * y)
    assert scaled.slope == pytest.approx(fit.slope, rel=1e-9)
    assert scaled.r2 == pytest.approx(fit.r2, rel=1e-9)


def test_entries_that_are_not_positive_are_dropped_and_counted():
    x, y = noisy_power_law()
    y[[3, 7]] = [0.0, -1.0]
    x[[7, 9]] = [-2.0, 0.0]
    keep = np.setdiff1d(np.arange(40), [3, 7, 9])
    fit, clean = fit_loglog(x, y), fit_loglog(x[keep], y[keep])
    assert (fit.n_used, fit.n_dropped) == (37, 3)
    assert fit.slope == clean.slope


def test_fewer_than_five_is_no_fit_and_says_how_many():
    x, y = noisy_power_law(n=8)
    y[:4] = -1
    with pytest.raises(NoFitError, match="4 of 8"):
        fit_loglog(x, y)
    y[3] = 1.0
    assert fit_loglog(x, y).n_used == 5


def test_equal_x_is_no_fit():
    with pytest.raises(NoFitError, match="all 6 usable entries of 6 have the same x"):
        fit_loglog(np.full(6, 2.0), np.arange(1.0, 7.0))


def test_constant_y_has_slope_zero_and_lies_on_its_line():
    fit = fit_loglog(np.arange(1.0, 9.0), np.full(8, 0.3))
    assert fit.slope == pytest.approx(0, abs=1e-15)
    assert fit.r2 == 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_nan_and_infinity_are_errors_not_dropped(bad, side):
    data = list(noisy_power_law())
    data[side][5] = bad
    with pytest.raises(NumericalError, match="log-log fit"):
        fit_loglog(*data)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="one length"):
        fit_loglog([1, 2, 3], [1, 2])
