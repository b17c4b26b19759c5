import numpy as np
import pytest

from spectral_laws.claims.curvature_layers import (
    measure_conv_alpha,
    measure_head_alpha,
    measure_lognormal_share,
    measure_participation_bound,
    measure_transfer_error,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


@pytest.mark.parametrize(
    ("measure", "claim", "setting", "value", "expected"),
    [
        (measure_conv_alpha, "B1", "conv", 2.0, "reproduced"),
        (measure_conv_alpha, "B1", "conv", 1.65, "direction reproduced"),
        (measure_conv_alpha, "B1", "conv", 1.0, "not reproduced"),
        (measure_head_alpha, "B3", "head", 3.0, "reproduced"),
        (measure_head_alpha, "B3", "head", 6.0, "direction reproduced"),
        (measure_head_alpha, "B3", "head", 1.4, "not reproduced"),
        (measure_transfer_error, "B11", "transfer", 0.02, "reproduced"),
        (measure_transfer_error, "B11", "transfer", 0.1, "direction reproduced"),
        (measure_transfer_error, "B11", "transfer", 0.5, "not reproduced"),
    ],
)
def test_medians(world, resampling, verdict, measure, claim, setting, value, expected):
    exponents = world["exponents"](**{setting: value})
    result = measure(ClaimTables(exponents=exponents), resampling)
    assert result.value == pytest.approx(value, rel=0.1)
    assert result.ci_low <= result.value <= result.ci_high
    assert verdict(claim, result) == expected


def test_median_is_over_the_layers_of_one_kind(world, resampling):
    exponents = world["exponents"]()
    result = measure_conv_alpha(ClaimTables(exponents=exponents), resampling)
    conv = exponents[exponents["kind"] == "conv"]
    assert result.value == np.median(conv["alpha"])
    assert result.n == len(conv) == 80
    assert "80 conv layers of 4 trainings (resnet18), 0 without a fit" in result.reason


def test_transfer_error_reports_the_other_definition(world, resampling):
    result = measure_transfer_error(ClaimTables(exponents=world["exponents"]()), resampling)
    assert "0.02 with s fitted to sorted curvatures" in result.reason
    assert result.n == 2 * 4 * 21


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.9, "reproduced"), (0.6, "direction reproduced"), (0.2, "not reproduced")],
)
def test_share_of_lognormal_layers(world, resampling, verdict, share, expected):
    exponents = world["exponents"](lognormal=share)
    result = measure_lognormal_share(ClaimTables(exponents=exponents), resampling)
    assert result.value == exponents["rank_model"].eq("lognormal").mean()
    assert result.value == pytest.approx(share, abs=0.06)
    assert verdict("B12", result) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1.0, "reproduced"), (0.7, "direction reproduced"), (0.3, "not reproduced")],
)
def test_share_within_the_bound(world, resampling, verdict, share, expected):
    result = measure_participation_bound(
        ClaimTables(exponents=world["exponents"](bounded=share)), resampling
    )
    assert result.value == pytest.approx(share, abs=0.05)
    assert verdict("B13", result) == expected


def test_layers_without_a_finite_bound_do_not_count(world, resampling):
    exponents = world["exponents"](bounded=0.5)
    unbounded = exponents["participation_ratio"] > 2.5
    exponents.loc[unbounded, "participation_bound"] = np.nan
    result = measure_participation_bound(ClaimTables(exponents=exponents), resampling)
    assert result.value == 1.0
    assert f"{int(unbounded.sum())} with alpha gamma <= 1" in result.reason
    exponents["participation_bound"] = np.nan
    with pytest.raises(NoFitError, match="none has a finite bound"):
        measure_participation_bound(ClaimTables(exponents=exponents), resampling)


def test_layers_without_a_fit_are_counted_not_used(world, resampling):
    exponents = world["exponents"]()
    bad = exponents.index[exponents["kind"] == "head"][:1]
    exponents.loc[bad, "status"] = "no fit"
    exponents.loc[bad, "alpha"] = np.nan
    result = measure_head_alpha(ClaimTables(exponents=exponents), resampling)
    assert result.n == 7
    assert "1 without a fit" in result.reason
    exponents["status"] = "no fit"
    with pytest.raises(NoFitError, match="none of 8 head layers has a fit"):
        measure_head_alpha(ClaimTables(exponents=exponents), resampling)


def test_interval_needs_three_trainings_of_each_model(world, resampling):
    with pytest.raises(NoFitError, match="2 independent"):
        measure_conv_alpha(ClaimTables(exponents=world["exponents"](seeds=2)), resampling)


def test_interval_is_over_trainings_not_layers(world, resampling):
    exponents = world["exponents"]()
    conv = exponents["kind"] == "conv"
    exponents.loc[conv, "alpha"] = 2.0 + 0.1 * exponents["seed"][conv]
    result = measure_conv_alpha(ClaimTables(exponents=exponents), resampling)
    # 4 trainings with medians 2.0, 2.1, 2.2, 2.3; 80 independent layers would give about +-0.025
    assert result.ci_high - result.ci_low > 0.15
