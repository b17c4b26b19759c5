import re
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
    result = CURVATURE[claim].judged(gap_tables(decomposition={name: gap}), resampling)
    assert result.value == gap
    assert (result.ci_low, result.ci_high) == (None, None)
    assert result.n == 144 * 4
    assert verdict(claim, result) == expected


@pytest.mark.parametrize(
    ("slope", "expected"),
    [(0.1, "reproduced"), (-0.3, "direction reproduced"), (0.8, "not reproduced")],
)
def test_slope_of_the_gap(gap_tables, resampling, verdict, slope, expected):
    tables = gap_tables(ladder={"slope": slope, "chi": 7.0})
    result = CURVATURE["B10"].judged(tables, resampling)
    assert result.value == pytest.approx(slope, abs=0.02)
    assert result.n == 44
    assert "chi itself is 7 in the median layer, 7 to 7" in result.reason
    assert verdict("B10", result) == expected
    beside = {name: m(tables, resampling) for name, m in CURVATURE["B10"].beside.items()}
    true = beside["factors of the true Fisher"]
    assert true.value == pytest.approx(slope + 0.3, abs=0.02)
    assert "(separable)" in beside["depth-wise convolutions"].reason
    assert beside["depth-wise convolutions"].n == 3 * 4


def with_fisher(tables, *, median=37.0, slope=-0.4, without=()):
    """The tables with the rung Gauss-Newton / empirical Fisher, but for some networks."""
    rung = tables.ladder[tables.ladder["ratio"] == "exact/kronecker"]
    rung = rung[~rung["model"].isin(without)].assign(ratio="gauss_newton/fisher")
    conv = rung["role"].isin(["conv", "pointwise_conv"])
    rung = rung.assign(median=np.where(conv, median, 999.0), slope=np.where(conv, slope, 9.0))
    return replace(tables, ladder=pd.concat([tables.ladder, rung], ignore_index=True))


def test_reasons_say_how_much_of_the_gap_is_the_empirical_fisher(gap_tables, resampling):
    tables = with_fisher(gap_tables(ladder={"spread": 0.5}))
    fisher = "Gauss-Newton over empirical Fisher, a part of chi, is "
    slope = CURVATURE["B10"].judged(tables, resampling)
    assert slope.reason.split("; ")[-2] == f"{fisher}37 in the median layer, its median slope -0.4"
    # most main layers are no convolutions
    correlation = CURVATURE["B16"].judged(tables, resampling)
    assert correlation.reason.endswith(f"; {fisher}999 in the median layer")
    for claim in ("B10", "B16"):
        true = CURVATURE[claim].beside["factors of the true Fisher"](tables, resampling)
        assert "empirical" not in true.reason
    fewer = CURVATURE["B10"].judged(with_fisher(gap_tables(), without=["vgg11"]), resampling)
    assert f"{fisher}37 in the median layer of the 28 that have it, its" in fewer.reason
    nothing = CURVATURE["B16"].judged(gap_tables(ladder={"spread": 0.5}), resampling)
    assert nothing.reason.endswith(f"{fisher.removesuffix('is ')}is not known in these layers")


@pytest.mark.parametrize(
    ("slope", "text"),
    [
        (0.1, "reproduced with those of the empirical Fisher, direction reproduced with those of"),
        (0.3, "direction reproduced with those of the empirical Fisher, not reproduced with those"),
        (-0.2, "direction reproduced with those of the empirical Fisher, reproduced with those of"),
        (0.9, None),
    ],
)
def test_reason_says_whether_true_factors_get_another_verdict(gap_tables, resampling, slope, text):
    """The slope with true factors is 0.3 more."""
    reason = CURVATURE["B10"].judged(gap_tables(ladder={"slope": slope}), resampling).reason
    assert ("the factors disagree" in reason) == (text is not None)
    assert text is None or f"; the factors disagree: {text}" in reason


def test_without_true_factors_nothing_disagrees(gap_tables, resampling):
    tables = gap_tables(ladder={"slope": 0.1})
    tables.ladder.loc[tables.ladder["ratio"] == "exact/kronecker_true", "slope"] = np.nan
    result = CURVATURE["B10"].judged(tables, resampling)
    assert result.value == pytest.approx(0.1, abs=0.02)
    assert "disagree" not in result.reason


def test_correlation_with_the_gap(gap_tables, resampling, verdict):
    tables = gap_tables(ladder={"spread": 0.5})
    result = CURVATURE["B16"].judged(tables, resampling)
    assert result.value == pytest.approx(1.0)
    assert verdict("B16", result) == "reproduced"
    # chi = 10 / 10^(|alpha - 2| / 4) comes the nearer to 1 the farther alpha is from 2
    tables = gap_tables(ladder={"chi": 10.0, "spread": -0.25})
    result = CURVATURE["B16"].judged(tables, resampling)
    assert result.value == pytest.approx(-1.0)
    assert verdict("B16", result) == "not reproduced"


def test_the_sign_of_the_log_gap_does_not_count(gap_tables, resampling):
    tables = gap_tables(ladder={"chi": 1.0, "spread": 0.5})
    even = tables.ladder["layer_index"] % 2 == 0
    tables.ladder.loc[even, "median"] = 1 / tables.ladder.loc[even, "median"]
    assert CURVATURE["B16"].judged(tables, resampling).value == pytest.approx(1.0)


def test_correlation_equals_scipy_over_matched_layers(gap_tables, resampling):
    tables = gap_tables()
    ladder = tables.ladder.sample(frac=1, random_state=3)  # rows in another order
    ladder["median"] = np.exp(np.random.default_rng(5).normal(size=len(ladder)))
    lost = ladder.index[(ladder["model"] == "mlp") & (ladder["ratio"] == "exact/kronecker")][:2]
    ladder.loc[lost, "median"] = np.nan
    result = CURVATURE["B16"].judged(replace(tables, ladder=ladder), resampling)
    key = ["model", "seed", "layer"]
    chi = ladder[ladder["ratio"] == "exact/kronecker"].set_index(key)["median"].dropna()
    last = tables.exponents[tables.exponents["final"]].set_index(key)
    alpha = last[last["role"].notna()]["alpha"].reindex(chi.index)
    main = chi.index.get_level_values("model").isin(
        ["resnet18", "vgg11", "mlp", "gpt2", "vit_tiny"]
    )
    expected = stats.spearmanr((alpha - 2).abs()[main], np.log10(chi).abs()[main]).statistic
    assert result.value == pytest.approx(expected, abs=1e-12)
    assert result.n == int(main.sum()) == 146
    within = CURVATURE["B16"].beside["within each training"](
        replace(tables, ladder=ladder), resampling
    )
    by_training = [
        stats.spearmanr((alpha - 2).abs()[rows], np.log10(chi).abs()[rows]).statistic
        for rows in chi[main].groupby(["model", "seed"]).groups.values()
    ]
    assert within.value == pytest.approx(np.median(by_training), abs=1e-12)
    assert within.n == len(by_training) == 20


@pytest.mark.parametrize(
    ("noise", "expected"), [(0.1, "reproduced"), (4.0, "direction reproduced")]
)
def test_pooled_correlation_with_sigma_squared(
    gap_tables, resampling, verdict, world, noise, expected
):
    tables = gap_tables(spectra={"noise": noise})
    result = CURVATURE["B21"].judged(tables, resampling)
    rows = tables.spectra
    rows = rows[rows["final"] & (rows["part"] == "whole") & (rows["index"] <= 20)]
    rows = rows[rows["model"].isin(world["main"])]
    expected_r = stats.pearsonr(np.log(rows["kronecker"]), 2 * np.log(rows["singular_value"]))
    assert result.value == pytest.approx(expected_r.statistic, abs=1e-12)
    assert result.n == len(rows)
    assert verdict("B21", result) == expected


def test_reason_holds_the_share_of_factors_with_the_gradients_rank_model(gap_tables, resampling):
    tables = gap_tables()
    reason = CURVATURE["B21"].judged(tables, resampling).reason
    assert "share their rank model in a share of 0.875 [" in reason
    assert "of 296 factors (a 100%, delta 75%)" in reason
    without = replace(tables, factor_models=None)
    assert "the factor_models table is absent, so no rank model of a factor" in (
        CURVATURE["B21"].judged(without, resampling).reason
    )
    tables.factor_models["same"] = tables.factor_models["same"].astype(object)
    tables.factor_models.loc[tables.factor_models["factor"] == "delta", "same"] = None
    assert "a share of 1 [1, 1] of 148 factors (a 100%)" in (
        CURVATURE["B21"].judged(tables, resampling).reason
    )


def test_beside_the_pooled_correlation(gap_tables, resampling):
    tables = gap_tables(decomposition={"r": 0.8})
    beside = {name: m(tables, resampling) for name, m in CURVATURE["B21"].beside.items()}
    true = beside["factors of the true Fisher"]
    assert "gpt2" not in true.reason.split("trainings (")[1].split(")")[0]
    gpt2 = 4 * (8 * 20 + 9)
    assert f"{gpt2} directions without a positive Kronecker curvature" in true.reason
    assert beside["median of each layer's own"].value == pytest.approx(0.8, abs=0.01)
    assert beside["median of each layer's own"].n == 148


def test_no_layer_with_factors_is_no_value(gap_tables, resampling):
    tables = gap_tables()
    tables.spectra["kronecker"] = np.nan
    with pytest.raises(NoFitError, match="none of 148 layers has a Kronecker curvature"):
        CURVATURE["B21"].judged(tables, resampling)


def test_pearson_is_numpys_and_has_no_value_for_constants():
    x, y = np.random.default_rng(0).normal(size=(2, 9))
    assert pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-14)
    assert np.isnan(pearson(x, np.ones(9)))
    assert np.isnan(pearson(x[:2], y[:2]))


def test_the_reason_counts_the_layers_that_do_depend_on_sigma(gap_tables, resampling):
    tables = gap_tables(ladder={"slope": 0.0})
    ladder = tables.ladder
    rows = (ladder["ratio"] == "exact/kronecker") & ladder["layer"].isin(
        ladder["layer"].unique()[::2]
    )
    for name, value in (("slope", 0.4), ("slope_low", 0.3), ("slope_high", 0.5)):
        ladder.loc[rows, name] = value
    reason = CURVATURE["B10"].judged(tables, resampling).reason
    counts = re.search(r"is above 0.15 in (\d+)%, and its interval leaves 0 out in (\d+)%", reason)
    assert counts[1] == counts[2]
    assert 30 <= int(counts[1]) <= 70
