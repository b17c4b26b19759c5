import pandas as pd
import pytest

from spectral_laws.claims.recovery_errors import measure_flat_exponent, measure_steep_exponent
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError

CASES = {
    "A5": (measure_steep_exponent, {"gamma": 1.0, "law": "mse", "tail_exponent": -0.6}),
    "A6": (measure_flat_exponent, {"gamma": 0.4, "law": "explained", "tail_exponent": 0.3}),
}


@pytest.mark.parametrize("claim", CASES)
@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.05, "reproduced"), (0.2, "direction reproduced"), (0.6, "not reproduced")],
)
def test_difference_of_exponents(world, resampling, verdict, claim, difference, expected):
    measure, case = CASES[claim]
    metrics = world["metrics"](exponent=case["tail_exponent"] + difference, **case)
    result = measure(ClaimTables(metrics=metrics), resampling)
    assert result.value == pytest.approx(difference, abs=0.03)
    assert result.ci_low - 0.01 < difference < result.ci_high + 0.01
    assert f"against {case['tail_exponent']:.3g}" in result.reason
    assert verdict(claim, result) == expected


@pytest.mark.parametrize("claim", CASES)
def test_mean_over_studies(world, resampling, claim):
    measure, case = CASES[claim]
    tail = case["tail_exponent"]
    metrics = pd.concat(
        [
            world["metrics"](exponent=tail + 0.1, noise=0.0, **case),
            world["metrics"](exponent=tail + 0.3, noise=0.0, dimension=64, **case),
        ]
    )
    result = measure(ClaimTables(metrics=metrics), resampling)
    assert [result.value, result.ci_low, result.ci_high] == pytest.approx([0.2] * 3)
    assert result.n == 10


@pytest.mark.parametrize("claim", CASES)
def test_gamma_selects_the_study(world, resampling, claim):
    measure, case = CASES[claim]
    other = CASES["A6" if claim == "A5" else "A5"][1]
    metrics = world["metrics"](exponent=other["tail_exponent"], **other)
    with pytest.raises(NoFitError, match="no study with the required gamma"):
        measure(ClaimTables(metrics=metrics), resampling)
    nonlinear = world["metrics"](exponent=0.1, **case).assign(readout="tanh")
    with pytest.raises(NoFitError, match="identity readout"):
        measure(ClaimTables(metrics=nonlinear), resampling)


def test_window_needs_three_sizes(world, resampling):
    measure, case = CASES["A5"]
    metrics = world["metrics"](exponent=-0.6, **case)
    kept = metrics[metrics["n_recovered"].isin([0, 1, 2, 7])]
    with pytest.raises(NoFitError, match="3 sample sizes"):
        measure(ClaimTables(metrics=kept), resampling)


def test_explained_share_below_zero_is_no_value(world, resampling):
    measure, case = CASES["A6"]
    metrics = world["metrics"](exponent=0.3, **case)
    metrics.loc[metrics["n_recovered"] == 1, "mse"] = 1.2
    with pytest.raises(NoFitError, match="no value"):
        measure(ClaimTables(metrics=metrics), resampling)


def test_too_few_seeds(world, resampling):
    measure, case = CASES["A5"]
    metrics = world["metrics"](exponent=-0.6, seeds=2, **case)
    with pytest.raises(NoFitError, match="independent repetition"):
        measure(ClaimTables(metrics=metrics), resampling)


def test_rounding_of_the_whole_weight_is_no_explained_share(world, resampling):
    # The weights' squares sum to 1 only up to rounding, below the first threshold too.
    measure, case = CASES["A6"]
    metrics = world["metrics"](exponent=0.35, **case)
    rounded = metrics.assign(tail_mse=metrics["tail_mse"].replace(1.0, 1 - 1e-16))
    rounded["tail_mse"] = rounded["tail_mse"].where(rounded["n_recovered"] > 0, 1 - 1.2e-16)
    clean = measure(ClaimTables(metrics=metrics), resampling)
    assert measure(ClaimTables(metrics=rounded), resampling).value == pytest.approx(
        clean.value, abs=1e-9
    )
