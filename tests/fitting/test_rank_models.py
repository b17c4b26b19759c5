import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.errors import NoFitError, NumericalError
from spectral_laws.fitting.rank_models import compare_rank_models

K = np.arange(1.0, 25.0)
LAWS = {
    "power_law": -1.3 * np.log(K),
    "exponential": -0.2 * K,
    "lognormal": -0.3 * np.log(K) - 0.4 * np.log(K) ** 2,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_finds_the_planted_law(law, noise):
    log_sigma = LAWS[law] + noise * np.random.default_rng(1).normal(size=K.size)
    assert compare_rank_models(np.exp(log_sigma)).best == law


def test_bic_from_normal_equations():
    log_sigma = LAWS["power_law"] + np.random.default_rng(2).normal(size=K.size)
    powers = {"power_law": np.log(K), "exponential": K}
    bic = compare_rank_models(np.exp(log_sigma)).bic
    n = K.size
    for name, x in powers.items():
        residual_variance = np.var(log_sigma) * (1 - np.corrcoef(x, log_sigma)[0, 1] ** 2)
        assert bic[name] == pytest.approx(n * np.log(residual_variance) + 2 * np.log(n), rel=1e-10)
    coefficients = np.polyfit(np.log(K), log_sigma, 2)
    rss = np.sum((log_sigma - np.polyval(coefficients, np.log(K))) ** 2)
    assert bic["lognormal"] == pytest.approx(n * np.log(rss / n) + 3 * np.log(n), rel=1e-10)


@given(st.floats(1e-6, 1e6))
def test_differences_do_not_depend_on_units(scale):
    sigma = np.exp(LAWS["exponential"] + 0.1 * np.random.default_rng(3).normal(size=K.size))
    one, other = compare_rank_models(sigma).bic, compare_rank_models(scale * sigma).bic
    for name in one:
        assert other[name] == pytest.approx(one[name], abs=1e-6)


def test_values_that_are_not_positive_keep_the_rank_of_the_others():
    with_hole = np.exp(LAWS["power_law"])
    with_hole[[4, 9]] = 0.0
    assert compare_rank_models(with_hole).best == "power_law"
    assert compare_rank_models(np.delete(np.exp(LAWS["power_law"]), [4, 9])).best != "power_law"


def test_too_few_values():
    with pytest.raises(NoFitError, match="4 of 6"):
        compare_rank_models([4, 3, 2, 1, 0, 0])


def test_nan_is_an_error():
    with pytest.raises(NumericalError, match="rank models"):
        compare_rank_models([4, 3, np.nan, 1, 1, 1])
