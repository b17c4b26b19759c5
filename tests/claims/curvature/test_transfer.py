import numpy as np
import pytest

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


def transfer_tables(world, *, transfer=0.01, **controls):
    exponents = world["exponents"](transfer=transfer)
    return ClaimTables(
        exponents=exponents,
        experiments=world["experiments"](exponents),
        independence=world["independence"](exponents, **controls),
    )


@pytest.mark.parametrize(
    ("transfer", "expected"),
    [(0.02, "reproduced"), (0.1, "direction reproduced"), (0.5, "not reproduced")],
)
def test_median_error_of_the_whole_batch(world, resampling, verdict, transfer, expected):
    result = CURVATURE["B11"].judged(transfer_tables(world, transfer=transfer), resampling)
    assert result.value == pytest.approx(transfer, rel=0.1)
    assert result.ci_low <= result.value <= result.ci_high
    assert f"{2 * transfer:.3g} with s fitted to sorted curvatures" in result.reason
    assert verdict("B11", result) == expected


def test_reason_and_beside_hold_all_controls(world, resampling):
    tables = transfer_tables(world, halves=0.3, permuted=1.5, free=0.02)
    reason = CURVATURE["B11"].judged(tables, resampling).reason
    names = {
        "disjoint halves": "halves",
        "s repeated on the other half": "repeat",
        "h permuted": "permuted",
        "least squares alone": "free",
    }
    assert list(CURVATURE["B11"].beside) == list(names)
    for name, column in names.items():
        values = tables.independence[f"error_{column}"]
        beside = CURVATURE["B11"].beside[name](tables, resampling)
        assert beside.value == np.median(values)
        assert beside.n == len(values) == 148
        assert f"{beside.value:.3g} [" in reason
    assert "with alpha from one half of the batch, gamma and s from the other" in reason
    assert "with h permuted" in reason
    assert "least squares alone at the observed R^2" in reason


def test_the_judged_value_and_interval_do_not_depend_on_the_controls(world, resampling):
    whole = transfer_tables(world)
    alone = ClaimTables(exponents=whole.exponents, experiments=whole.experiments)
    rng = resampling.generator.bit_generator.state
    results = []
    for tables in (whole, alone):
        resampling.generator.bit_generator.state = rng
        results.append(CURVATURE["B11"].judged(tables, resampling))
    one, two = results
    assert (one.value, one.ci_low, one.ci_high) == (two.value, two.ci_low, two.ci_high)
    assert "the independence table is absent, so nothing says" in two.reason
    with pytest.raises(NoFitError, match="the independence table is absent"):
        CURVATURE["B11"].beside["disjoint halves"](alone, resampling)


def test_a_control_without_values_is_said(world, resampling):
    tables = transfer_tables(world)
    tables.independence["error_halves"] = np.nan
    assert "no value with alpha from one half of the batch" in (
        CURVATURE["B11"].judged(tables, resampling).reason
    )


def test_weights_against_curvature(world, resampling, verdict):
    exponents = world["exponents"]()
    experiments = world["experiments"](exponents)
    for decay, expected in ((-0.2, "reproduced"), (0.2, "not reproduced")):
        weights = world["weights"](exponents, decay=decay, tail=3.0)
        tables = ClaimTables(exponents=exponents, experiments=experiments, weights=weights)
        result = CURVATURE["B22"].judged(tables, resampling)
        assert result.value == pytest.approx(decay, abs=0.03)
        assert verdict("B22", result) == expected
        (beside,) = CURVATURE["B22"].beside.values()
        assert beside(tables, resampling).value == pytest.approx(3.0, abs=0.03)
    assert "below s in 0% of the layers" in result.reason
    assert result.n == 148


def test_a_layer_without_s_or_tail_does_not_count(world, resampling):
    exponents = world["exponents"]()
    weights = world["weights"](exponents)
    first = exponents.index[exponents["model"] == "mlp"][:3]
    exponents.loc[first, "s"] = np.nan
    weights.loc[weights.index[weights["model"] == "gpt2"][0], "decay"] = np.nan
    tables = ClaimTables(
        exponents=exponents, experiments=world["experiments"](exponents), weights=weights
    )
    result = CURVATURE["B22"].judged(tables, resampling)
    assert result.n == 148 - 4
    assert "4 without a fit" in result.reason
