import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.recovery.perturbation import (
    measure_expansion_order,
    measure_noise_exponent,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


@pytest.mark.parametrize(
    ("order", "expected"),
    [(2.0, "reproduced"), (1.4, "direction reproduced"), (0.8, "not reproduced")],
)
def test_a9_order_of_the_expansion(world, resampling, verdict, order, expected):
    result = measure_expansion_order(
        ClaimTables(perturbation=world["perturbation"](order=order)), resampling
    )
    assert result.value == pytest.approx(order, abs=0.05)
    assert result.low - 0.01 < order < result.high + 0.01
    assert result.n_units == 2 * 4 * 6 * 4
    assert verdict("A9", result) == expected


def test_a9_judges_resolved_rows_alone(world, resampling):
    tables = ClaimTables(perturbation=world["perturbation"](unresolved=3, noise=0.0))
    result = measure_expansion_order(tables, resampling)
    assert result.value == pytest.approx(2.0, abs=1e-9)
    assert result.n_units == 2 * 4 * 3 * 4
    assert result.n_clusters == 2 * 4
    assert result.scope == f"d = 40 to 60, {2 * 4 * 3 * 4} with larger perturbations left out"
    few = ClaimTables(perturbation=world["perturbation"](unresolved=5))
    with pytest.raises(NoFitError, match="two sample sizes"):
        measure_expansion_order(few, resampling)


def test_a9_beside_it_stands_how_loose_the_bound_is(world, resampling):
    table = world["perturbation"](looseness=1.5, unresolved=2)
    wide = world["perturbation"](looseness=1.5, study="wide", width=8, dimensions=(40,))
    tables = ClaimTables(perturbation=pd.concat([table, wide], ignore_index=True))
    beside = measure_expansion_order(tables, resampling).beside
    values = {name: measurement.value for name, measurement in beside.items()}
    assert values == pytest.approx(
        {
            "Davis-Kahan bound over the true sine, k = 1": 3.0,
            "Davis-Kahan bound over the true sine, k = 8": 3 * 8**1.5,
            "exponent in k of that ratio": 1.5,
        }
    )
    assert all(one.low <= one.value + 1e-9 for one in beside.values())


@pytest.mark.parametrize(
    ("decay", "expected"),
    [(-0.5, "reproduced"), (-0.8, "direction reproduced"), (0.2, "not reproduced")],
)
def test_a11_noise_exponent(world, resampling, verdict, decay, expected):
    result = measure_noise_exponent(
        ClaimTables(perturbation=world["perturbation"](decay=decay)), resampling
    )
    assert result.value == pytest.approx(decay, abs=0.02)
    assert result.n_units == 2 * 4 * 6  # a matrix once, whatever its number of directions
    assert result.scope == "d = 40 to 60, n/D = 30 to 3e+03"
    assert verdict("A11", result) == expected


@pytest.mark.parametrize("measure", [measure_expansion_order, measure_noise_exponent])
def test_degrees_are_apart(world, resampling, measure):
    one = world["perturbation"](noise=0.0)
    two = world["perturbation"](
        noise=0.0, order=1.5, decay=-0.3, degree=2, study="quadratic", dimensions=(10, 12)
    )
    tables = ClaimTables(perturbation=pd.concat([one, two], ignore_index=True))
    found = [measure(tables, resampling, degree=degree) for degree in (1, 2)]
    expected = [2.0, 1.5] if measure is measure_expansion_order else [-0.5, -0.3]
    assert [m.value for m in found] == pytest.approx(expected, abs=1e-9)
    assert ["d = 10 to 12" in m.scope for m in found] == [False, True]
    with pytest.raises(NoFitError, match="no perturbation study has degree 2"):
        measure(ClaimTables(perturbation=one), resampling, degree=2)
    with pytest.raises(NoFitError, match="perturbation table is absent"):
        measure(ClaimTables(), resampling)


def test_intercepts_take_up_the_levels(world, resampling):
    # Levels that rise with k and differ by teacher would pull a slope without intercepts away.
    table = world["perturbation"](noise=0.0)
    table["expansion_error"] *= np.exp(5 * table["seed"] - table["dimension"])
    result = measure_expansion_order(ClaimTables(perturbation=table), resampling)
    assert [result.value, result.low, result.high] == pytest.approx([2.0] * 3, abs=1e-9)
