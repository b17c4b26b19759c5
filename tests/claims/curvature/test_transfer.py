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
    result = CURVATURE["B11"].primary(transfer_tables(world, transfer=transfer), resampling)
    assert result.value == pytest.approx(transfer, rel=0.1)
    assert result.low <= result.value <= result.high
    assert result.beside["s fitted to sorted curvatures"].value == 2 * transfer
    assert verdict("B11", result) == expected


@pytest.mark.parametrize(
    ("role", "name", "column"),
    [
        ("sensitivity", "disjoint halves", "halves"),
        ("sensitivity", "s repeated on the other half", "repeat"),
        ("control", "h permuted", "permuted"),
        ("control", "least squares alone", "free"),
    ],
)
def test_controls_are_rows_of_their_own(world, resampling, role, name, column):
    tables = transfer_tables(world, halves=0.3, permuted=1.5, free=0.02)
    measure = getattr(CURVATURE["B11"], role)[name]
    values = tables.independence[f"error_{column}"]
    result = measure(tables, resampling)
    assert result.value == np.median(values)
    assert result.n_units == len(values) == 148
    tables.independence[f"error_{column}"] = np.nan
    with pytest.raises(NoFitError, match="none of 148 layers has a fit"):
        measure(tables, resampling)
    alone = ClaimTables(exponents=tables.exponents, experiments=tables.experiments)
    with pytest.raises(NoFitError, match="the independence table is absent"):
        measure(alone, resampling)


def test_weights_against_curvature(world, resampling, verdict):
    exponents = world["exponents"]()
    experiments = world["experiments"](exponents)
    for decay, expected in ((-0.2, "reproduced"), (0.2, "not reproduced")):
        weights = world["weights"](exponents, decay=decay, tail=3.0)
        tables = ClaimTables(exponents=exponents, experiments=experiments, weights=weights)
        result = CURVATURE["B22"].primary(tables, resampling)
        assert result.value == pytest.approx(decay, abs=0.03)
        assert verdict("B22", result) == expected
        (density,) = CURVATURE["B22"].sensitivity.values()
        assert density(tables, resampling).value == pytest.approx(3.0, abs=0.03)
        last = exponents[exponents["final"] & exponents["model"].isin(world["main"])]
        key = ["model", "seed", "layer"]
        gap = weights.set_index(key)["decay"] - last.set_index(key)["s"]
        assert result.beside["share below s"].value == (gap.dropna() < 0).mean()
        assert result.beside["median s"].value == last["s"].median()
    assert result.n_units == 148


def test_a_layer_without_s_or_tail_does_not_count(world, resampling):
    exponents = world["exponents"]()
    weights = world["weights"](exponents)
    first = exponents.index[exponents["model"] == "mlp"][:3]
    exponents.loc[first, "s"] = np.nan
    weights.loc[weights.index[weights["model"] == "gpt2"][0], "decay"] = np.nan
    tables = ClaimTables(
        exponents=exponents, experiments=world["experiments"](exponents), weights=weights
    )
    result = CURVATURE["B22"].primary(tables, resampling)
    assert result.n_units == 148 - 4
    assert result.scope == "5 networks, 4 without a fit"
