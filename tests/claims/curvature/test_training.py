import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


@pytest.mark.parametrize(
    ("start", "expected"),
    [(1.5, "reproduced"), (0.8, "direction reproduced"), (2.3, "not reproduced")],
)
def test_rise_of_alpha(world, resampling, verdict, start, expected):
    exponents = world["exponents"](
        start={"conv": start, "pointwise_conv": start, "head": 2.0}, noise=0.03
    )
    tables = ClaimTables(exponents=exponents)
    result = CURVATURE["B17"].primary(tables, resampling)
    conv = exponents[exponents["role"].isin(["conv", "pointwise_conv"])]
    conv = conv[conv["model"].isin(["resnet18", "vgg11"])]
    change = [
        rows["alpha"][rows["final"]].median() - rows["alpha"][~rows["final"]].median()
        for _, rows in conv.groupby(["model", "seed"])
    ]
    assert result.value == pytest.approx(np.mean(change), abs=1e-12)
    assert result.value == pytest.approx(2.0 - start, abs=0.05)
    assert result.scope == "resnet18, vgg11"
    assert result.beside["at initialisation"].value == pytest.approx(start, abs=0.05)
    assert result.beside["trained"].value == pytest.approx(2.0, abs=0.05)
    assert (result.n_units, result.n_clusters, result.clusters) == (4 * (7 + 4), 8, "trainings")
    assert verdict("B17", result) == expected
    heads = CURVATURE["B17"].sensitivity["heads"](tables, resampling)
    assert heads.value == pytest.approx(1.0, abs=0.05)


def test_layers_without_a_fit_at_either_end_do_not_count(world, resampling):
    exponents = world["exponents"]()
    lost = exponents.index[(exponents["epoch"] == 0) & (exponents["role"] == "conv")][:3]
    exponents.loc[lost, ["alpha", "rank_model"]] = [np.nan, None]
    result = CURVATURE["B17"].primary(ClaimTables(exponents=exponents), resampling)
    assert result.n_units == 44 - 3
    assert result.scope == "resnet18, vgg11, 3 without a fit in both"
    shares = CURVATURE["B20"].primary(ClaimTables(exponents=exponents), resampling)
    assert shares.n_units == 4 * (8 + 6) - 3


def test_epochs_between_do_not_count(world, resampling):
    exponents = world["exponents"]()
    between = exponents[exponents["epoch"] == 0].assign(epoch=3, alpha=99.0, rank_model="other")
    more = pd.concat([exponents, between], ignore_index=True)
    for claim in ("B17", "B20"):
        one, two = (
            CURVATURE[claim].primary(ClaimTables(exponents=table), resampling)
            for table in (exponents, more)
        )
        assert (one.value, one.n_units) == (two.value, two.n_units)


@pytest.mark.parametrize("claim", ["B17", "B20"])
def test_without_initial_networks_there_is_no_value(world, resampling, claim):
    exponents = world["exponents"]()
    trained = exponents[exponents["final"]]
    with pytest.raises(NoFitError, match="no network was measured at initialisation"):
        CURVATURE[claim].primary(ClaimTables(exponents=trained), resampling)
    with pytest.raises(NoFitError, match="2 independent"):
        CURVATURE[claim].primary(ClaimTables(exponents=world["exponents"](seeds=2)), resampling)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(1.0, "reproduced"), (0.7, "direction reproduced"), (0.2, "not reproduced")],
)
def test_share_of_lognormal_layers(world, resampling, verdict, start, expected):
    exponents = world["exponents"](lognormal=0.6, start_lognormal=start)
    result = CURVATURE["B20"].primary(ClaimTables(exponents=exponents), resampling)
    rows = exponents[exponents["model"].isin(["resnet18", "vgg11"])]
    yes = rows["rank_model"].eq("lognormal")
    change = [
        yes[part.index[part["final"]]].mean() - yes[part.index[~part["final"]]].mean()
        for _, part in rows.groupby(["model", "seed"])
    ]
    assert result.value == pytest.approx(np.mean(change), abs=1e-12)
    assert verdict("B20", result) == expected


@pytest.mark.parametrize(
    ("noise", "expected"),
    [(4.0, "reproduced"), (0.8, "direction reproduced"), (0.05, "not reproduced")],
)
def test_finite_differences(world, resampling, verdict, noise, expected):
    table = world["finite_differences"](noise=noise, negative=0.5)
    tables = ClaimTables(finite_differences=table)
    result = CURVATURE["B4"].primary(tables, resampling)
    by_layer = []
    for _, layer in table[table["finite_difference"] > 0].groupby(["model", "seed", "layer"]):
        x, y = np.log(layer["singular_value"]), np.log(layer["finite_difference"])
        by_layer.append(stats.linregress(x, y).rvalue ** 2)
    assert result.value == pytest.approx(np.median(by_layer), abs=1e-10)
    assert result.n_units == len(by_layer) == 48
    negative = result.beside["share of h at or below zero"]
    assert (negative.value, negative.n_units) == (0.5, 960)
    assert result.scope == "mlp, resnet18, step 0.001"
    assert verdict("B4", result) == expected
    exact = CURVATURE["B4"].control["exact curvatures of the same directions"](tables, resampling)
    assert exact.value == pytest.approx(1.0)


def test_layers_with_few_positive_differences_are_counted(world, resampling):
    table = world["finite_differences"]()
    lost = (table["model"] == "mlp") & (table["layer_index"] == 1)
    table.loc[lost & (table["index"] > 4), "finite_difference"] = -1.0
    result = CURVATURE["B4"].primary(ClaimTables(finite_differences=table), resampling)
    assert result.n_units == 44
    assert result.scope == "mlp, resnet18, 4 without a fit, step 0.001"
    table["finite_difference"] = -1.0
    with pytest.raises(NoFitError, match="none of 48 layers has a fit"):
        CURVATURE["B4"].primary(ClaimTables(finite_differences=table), resampling)
