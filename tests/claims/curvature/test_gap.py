from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.curvature.gap import pearson
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


@pytest.fixture
def gap_tables(world):
    def make(*, decomposition=None, ladder=None, spectra=None):
        exponents = world["exponents"]()
        return ClaimTables(
            exponents=exponents,
            experiments=world["experiments"](exponents),
            decomposition=world["decomposition"](exponents, **(decomposition or {})),
            ladder=world["ladder"](exponents, **(ladder or {})),
            spectra=world["spectra"](exponents, **(spectra or {})),
            factor_models=world["factor_models"](exponents),
        )

    return make


@pytest.mark.parametrize(("claim", "name"), [("B5", "kronecker"), ("B6", "identity")])
@pytest.mark.parametrize(("gap", "expected"), [(1e-9, "reproduced"), (1e-3, "not reproduced")])
def test_identities_by_their_worst_layer(
    gap_tables, resampling, verdict, claim, name, gap, expected
):
    result = CURVATURE[claim].primary(gap_tables(decomposition={name: gap}), resampling)
    assert result.value == gap
    assert (result.low, result.high) == (None, None)
    assert (result.n_units, result.n_clusters) == (144 * 4, 21 * 4)
    assert verdict(claim, result) == expected


@pytest.mark.parametrize(
    ("slope", "expected"),
    [(0.1, "reproduced"), (-0.3, "direction reproduced"), (0.8, "not reproduced")],
)
def test_slope_of_the_gap(gap_tables, resampling, verdict, slope, expected):
    tables = gap_tables(ladder={"slope": slope, "chi": 7.0})
    result = CURVATURE["B10"].primary(tables, resampling)
    assert result.value == pytest.approx(slope, abs=0.02)
    assert result.n_units == 44
    assert result.beside["median chi"].value == 7
    assert verdict("B10", result) == expected
    others = {name: m(tables, resampling) for name, m in CURVATURE["B10"].sensitivity.items()}
    true = others["factors of the true Fisher"]
    assert true.value == pytest.approx(slope + 0.3, abs=0.02)
    assert others["depth-wise convolutions"].scope == "separable"
    assert others["depth-wise convolutions"].n_units == 3 * 4


def with_fisher(tables, *, median=37.0, slope=-0.4, without=()):
    """The tables with the rung Gauss-Newton / empirical Fisher, but for some networks."""
    rung = tables.ladder[tables.ladder["ratio"] == "exact/kronecker"]
    rung = rung[~rung["model"].isin(without)].assign(ratio="gauss_newton/fisher")
    conv = rung["role"].isin(["conv", "pointwise_conv"])
    rung = rung.assign(median=np.where(conv, median, 999.0), slope=np.where(conv, slope, 9.0))
    return replace(tables, ladder=pd.concat([tables.ladder, rung], ignore_index=True))


def test_beside_the_gap_stands_its_part_of_the_empirical_fisher(gap_tables, resampling):
    tables = with_fisher(gap_tables(ladder={"spread": 0.5}))
    fisher = "Gauss-Newton over empirical Fisher, median"
    beside = CURVATURE["B10"].primary(tables, resampling).beside
    assert (beside[fisher].value, beside[f"{fisher} slope"].value) == (37, -0.4)
    # most main layers are no convolutions
    assert CURVATURE["B16"].primary(tables, resampling).beside[fisher].value == 999
    for claim in ("B10", "B16"):
        true = CURVATURE[claim].sensitivity["factors of the true Fisher"](tables, resampling)
        assert fisher not in true.beside
    fewer = CURVATURE["B10"].primary(with_fisher(gap_tables(), without=["vgg11"]), resampling)
    assert fewer.beside[fisher].n_units == 28
    nothing = CURVATURE["B16"].primary(gap_tables(ladder={"spread": 0.5}), resampling)
    assert fisher not in nothing.beside


def test_correlation_with_the_gap(gap_tables, resampling, verdict):
    tables = gap_tables(ladder={"spread": 0.5})
    result = CURVATURE["B16"].primary(tables, resampling)
    assert result.value == pytest.approx(1.0)
    assert verdict("B16", result) == "reproduced"
    # chi = 10 / 10^(|alpha - 2| / 4) comes the nearer to 1 the farther alpha is from 2
    tables = gap_tables(ladder={"chi": 10.0, "spread": -0.25})
    result = CURVATURE["B16"].primary(tables, resampling)
    assert result.value == pytest.approx(-1.0)
    assert verdict("B16", result) == "not reproduced"


def test_the_sign_of_the_log_gap_does_not_count(gap_tables, resampling):
    tables = gap_tables(ladder={"chi": 1.0, "spread": 0.5})
    even = tables.ladder["layer_index"] % 2 == 0
    tables.ladder.loc[even, "median"] = 1 / tables.ladder.loc[even, "median"]
    assert CURVATURE["B16"].primary(tables, resampling).value == pytest.approx(1.0)


def test_correlation_equals_scipy_over_matched_layers(gap_tables, resampling):
    tables = gap_tables()
    ladder = tables.ladder.sample(frac=1, random_state=3)  # rows in another order
    ladder["median"] = np.exp(np.random.default_rng(5).normal(size=len(ladder)))
    lost = ladder.index[(ladder["model"] == "mlp") & (ladder["ratio"] == "exact/kronecker")][:2]
    ladder.loc[lost, "median"] = np.nan
    result = CURVATURE["B16"].primary(replace(tables, ladder=ladder), resampling)
    key = ["model", "seed", "layer"]
    chi = ladder[ladder["ratio"] == "exact/kronecker"].set_index(key)["median"].dropna()
    last = tables.exponents[tables.exponents["final"]].set_index(key)
    alpha = last[last["role"].notna()]["alpha"].reindex(chi.index)
    main = chi.index.get_level_values("model").isin(
        ["resnet18", "vgg11", "mlp", "gpt2", "vit_tiny"]
    )
    expected = stats.spearmanr((alpha - 2).abs()[main], np.log10(chi).abs()[main]).statistic
    assert result.value == pytest.approx(expected, abs=1e-12)
    assert result.n_units == int(main.sum()) == 146
    within = CURVATURE["B16"].sensitivity["within each training"](
        replace(tables, ladder=ladder), resampling
    )
    by_training = [
        stats.spearmanr((alpha - 2).abs()[rows], np.log10(chi).abs()[rows]).statistic
        for rows in chi[main].groupby(["model", "seed"]).groups.values()
    ]
    assert within.value == pytest.approx(np.median(by_training), abs=1e-12)
    assert within.n_units == len(by_training) == 20


@pytest.mark.parametrize(
    ("noise", "expected"), [(0.1, "reproduced"), (4.0, "direction reproduced")]
)
def test_pooled_correlation_with_sigma_squared(
    gap_tables, resampling, verdict, world, noise, expected
):
    tables = gap_tables(spectra={"noise": noise})
    result = CURVATURE["B21"].primary(tables, resampling)
    rows = tables.spectra
    rows = rows[rows["final"] & (rows["part"] == "whole") & (rows["index"] <= 20)]
    rows = rows[rows["model"].isin(world["main"])]
    expected_r = stats.pearsonr(np.log(rows["kronecker"]), 2 * np.log(rows["singular_value"]))
    assert result.value == pytest.approx(expected_r.statistic, abs=1e-12)
    assert result.n_units == len(rows)
    assert verdict("B21", result) == expected


def test_share_of_factors_with_the_gradients_rank_model(gap_tables, resampling):
    tables = gap_tables()
    share = CURVATURE["B21"].sensitivity["rank model of a factor is the gradient's"]
    result = share(tables, resampling)
    assert (result.value, result.n_units, result.judged) == (0.875, 296, False)
    assert result.low < 0.875 < result.high
    assert {name: part.value for name, part in result.beside.items()} == {"a": 1.0, "delta": 0.75}
    with pytest.raises(NoFitError, match="the factor_models table is absent"):
        share(replace(tables, factor_models=None), resampling)
    tables.factor_models["same"] = tables.factor_models["same"].astype(object)
    tables.factor_models.loc[tables.factor_models["factor"] == "delta", "same"] = None
    result = share(tables, resampling)
    assert (result.value, result.n_units, [*result.beside]) == (1.0, 148, ["a"])


def test_beside_the_pooled_correlation(gap_tables, resampling):
    tables = gap_tables(decomposition={"r": 0.8})
    others = {name: m(tables, resampling) for name, m in CURVATURE["B21"].sensitivity.items()}
    gpt2 = 4 * (8 * 20 + 9)
    assert others["factors of the true Fisher"].scope == (
        f"4 networks, {gpt2} without a positive Kronecker curvature"
    )
    assert others["median of each layer's own"].value == pytest.approx(0.8, abs=0.01)
    assert others["median of each layer's own"].n_units == 148


def test_no_layer_with_factors_is_no_value(gap_tables, resampling):
    tables = gap_tables()
    tables.spectra["kronecker"] = np.nan
    with pytest.raises(NoFitError, match="none of 148 layers has a Kronecker curvature"):
        CURVATURE["B21"].primary(tables, resampling)


def test_pearson_is_numpys_and_has_no_value_for_constants():
    x, y = np.random.default_rng(0).normal(size=(2, 9))
    assert pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-14)
    assert np.isnan(pearson(x, np.ones(9)))
    assert np.isnan(pearson(x[:2], y[:2]))


def test_slopes_of_both_signs_have_a_small_median(gap_tables, resampling):
    tables = gap_tables(ladder={"slope": 0.0})
    ladder = tables.ladder
    ladder[["slope", "slope_low", "slope_high"]] = (0.01, -0.1, 0.1)
    chosen = ladder["layer"].isin(["layer0", "layer2"])
    for layer, sign in (("layer0", 1), ("layer2", -1)):
        ends = sign * np.array([0.4, 0.3, 0.5])
        columns = ["slope", *["slope_low", "slope_high"][::sign]]
        ladder.loc[ladder["layer"] == layer, columns] = ends
    result = CURVATURE["B10"].primary(tables, resampling)
    assert result.value == 0.01
    conv = ladder["role"].isin(["conv", "pointwise_conv"]) & ladder["model"].isin(
        ["resnet18", "vgg11"]
    )
    share = result.beside["share of slopes whose interval leaves 0 out"]
    assert share.value == pytest.approx(chosen[conv].mean())
    ladder.loc[ladder["layer"] == "layer1", "slope"] = -0.4
    ladder.loc[ladder["layer"] == "layer3", "slope"] = 0.4
    assert CURVATURE["B10"].primary(tables, resampling).beside["median |slope|"].value == 0.4
