import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.recovery.thresholds import (
    measure_readout_ratio,
    measure_recovery_order,
    measure_threshold_exponent,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError

WEAKNESS, FEATURES = "slope on log(1/lambda^2)", "slope on log D"


@pytest.mark.parametrize(
    ("on_weakness", "on_features", "judged", "expected"),
    [
        (1.0, 1.1, 1.1, "reproduced"),
        (0.5, 1.1, 0.5, "direction reproduced"),
        (1.1, 1.6, 1.6, "direction reproduced"),
        (-0.3, 1.0, -0.3, "not reproduced"),
        (1.0, -0.5, -0.5, "not reproduced"),
    ],
)
def test_a1_judges_the_slope_farther_from_1(
    world, resampling, verdict, on_weakness, on_features, judged, expected
):
    thresholds = world["thresholds"](
        on_weakness=on_weakness, on_features=on_features, factor=1e3, grid=(1, 1e12)
    )
    result = measure_threshold_exponent(ClaimTables(thresholds=thresholds), resampling)
    assert result.value == pytest.approx(judged, abs=0.05)
    assert result.low < judged < result.high
    by_weakness = judged == on_weakness
    assert result.scope.startswith(WEAKNESS if by_weakness else FEATURES)
    other = result.beside[FEATURES if by_weakness else WEAKNESS]
    assert other.value == pytest.approx(on_features if by_weakness else on_weakness, abs=0.05)
    assert other.low < other.value < other.high
    assert (result.n_units, result.n_clusters) == (5 * (5 + 6 + 7), 15)
    assert verdict("A1", result) == expected


def test_a1_without_noise_is_exact(world, resampling):
    thresholds = world["thresholds"](on_weakness=0.9, noise=0.0)
    result = measure_threshold_exponent(ClaimTables(thresholds=thresholds), resampling)
    assert [result.value, result.low, result.high] == pytest.approx([0.9] * 3)


def test_a1_uses_the_widest_degree_2_identity_study_of_two_dimensions(world, resampling):
    make = world["thresholds"]
    main = make(on_weakness=0.6, width=9)
    others = [
        make(study="linear", degree=1, on_weakness=3.0, width=10),
        make(study="tanh", readout="tanh", on_weakness=3.0, width=10),
        make(study="steep", on_weakness=3.0, dimensions=(36,), width=10),
        make(study="paper", on_weakness=3.0, dimensions=(25, 36, 49, 64)),
        make(study="true", features="hermite", on_weakness=0.7, on_features=1.1),
    ]
    tables = ClaimTables(thresholds=pd.concat([*others, main], ignore_index=True))
    result = measure_threshold_exponent(tables, resampling)
    assert result.value == pytest.approx(0.6, abs=0.05)
    assert result.scope == f"{WEAKNESS}, study wide, d = 25 to 49"
    true = measure_threshold_exponent(tables, resampling, features="hermite")
    assert true.value == pytest.approx(0.7, abs=0.05)
    assert "study true" in true.scope


def test_a1_beside_it_stand_theory_range_and_the_papers_proportions(world, resampling):
    make = world["thresholds"]
    main = make(noise=0.0, width=9, predicted=0.9)
    paper = make(
        study="paper", noise=0.0, on_weakness=0.7, predicted=0.8, dimensions=(25, 36, 49, 64)
    )
    tables = ClaimTables(thresholds=pd.concat([main, paper], ignore_index=True))
    beside = measure_threshold_exponent(tables, resampling).beside
    values = {name: one.value for name, one in beside.items()}
    assert len(values) == 9
    for where, first, second in (
        ("sharp theory", 0.9, 0.9),
        ("d1 growing with d", 0.7, 1.0),
        ("d1 growing with d, sharp theory", 0.8, 0.8),
    ):
        assert values[f"{WEAKNESS}, {where}"] == pytest.approx(first)
        assert values[f"{FEATURES}, {where}"] == pytest.approx(second)
    whole = np.log10(main["half_recovery"].max() / main["half_recovery"].min())
    assert values["decades of n*"] == pytest.approx(whole)
    assert values["decades of n* at one dimension"] == pytest.approx(0.8 * np.log10(9))
    growing = beside[f"{WEAKNESS}, d1 growing with d"]
    assert growing.scope == "study paper, d = 25 to 64"
    assert (growing.n_units, growing.n_clusters) == (5 * (5 + 6 + 7 + 8), 20)
    lost = main["direction"].eq(9) & main["seed"].eq(0)
    missing = main.assign(predicted_half_recovery=main["predicted_half_recovery"].mask(lost))
    alone = measure_threshold_exponent(ClaimTables(thresholds=missing), resampling).beside
    assert alone[f"{WEAKNESS}, sharp theory"].value == pytest.approx(0.9)
    assert alone[f"{WEAKNESS}, sharp theory"].n_units == int((~lost).sum())
    assert not any("growing" in name for name in alone)


def test_a1_leaves_out_directions_censored_for_any_seed(world, resampling):
    thresholds = world["thresholds"](noise=0.0)
    row = thresholds[(thresholds["dimension"] == 49) & (thresholds["direction"] == 7)].index[0]
    thresholds.loc[row, ["half_recovery", "censored"]] = [np.nan, "above"]
    # the same direction of the other seeds would pull the slope away if it were kept
    others = (thresholds["dimension"] == 49) & (thresholds["direction"] == 7)
    thresholds.loc[others & thresholds["half_recovery"].notna(), "half_recovery"] = 1.0
    result = measure_threshold_exponent(ClaimTables(thresholds=thresholds), resampling)
    assert result.value == pytest.approx(1.0)
    assert result.n_units == 5 * (5 + 6 + 6)
    assert result.scope.endswith(", 1 directions off the grid left out")


def test_a1_needs_two_dimensions_and_enough_teachers(world, resampling):
    make = world["thresholds"]
    with pytest.raises(NoFitError, match="enough dimensions"):
        measure_threshold_exponent(ClaimTables(thresholds=make(dimensions=(25,))), resampling)
    two = make(dimensions=(25, 36), seeds=1)
    with pytest.raises(NoFitError, match="independent repetition"):
        measure_threshold_exponent(ClaimTables(thresholds=two), resampling)
    flat = make(gamma=0.0, dimensions=(25, 36)).assign(weight=0.4)
    with pytest.raises(NoFitError, match="do not tell strength and dimension apart"):
        measure_threshold_exponent(ClaimTables(thresholds=flat), resampling)
    beyond = make(grid=(1.0, 2.0))
    with pytest.raises(NoFitError, match="0 half-recovery sizes"):
        measure_threshold_exponent(ClaimTables(thresholds=beyond), resampling)


@pytest.mark.parametrize(
    ("on_weakness", "value", "expected"),
    [(1.0, 1.0, "reproduced"), (-1.0, -1.0, "not reproduced")],
)
def test_a3_order(world, resampling, verdict, on_weakness, value, expected):
    thresholds = world["thresholds"](on_weakness=on_weakness, noise=0.001)
    result = measure_recovery_order(ClaimTables(thresholds=thresholds), resampling)
    assert result.value == pytest.approx(value)
    assert result.n_units == 15
    assert verdict("A3", result) == expected


def test_a3_random_order_is_not_reproduced(world, resampling, verdict):
    thresholds = world["thresholds"](on_weakness=0.0, noise=1.0, seeds=10)
    result = measure_recovery_order(ClaimTables(thresholds=thresholds), resampling)
    assert abs(result.value) < 0.35
    assert verdict("A3", result) == "not reproduced"


def test_a3_censored_sizes_keep_their_place(world, resampling):
    thresholds = world["thresholds"](noise=0.0)
    everything = thresholds["half_recovery"]
    low, high = everything.quantile(0.2), everything.quantile(0.6)
    cut = world["thresholds"](noise=0.0, grid=(low, high))
    assert set(cut["censored"]) == {"no", "below", "above"}
    result = measure_recovery_order(ClaimTables(thresholds=cut), resampling)
    assert 0.8 < result.value < 1  # ties of censored sizes, never a wrong order
    # a reversed place of the censored ones would show
    cut["censored"] = cut["censored"].replace({"above": "below", "below": "above"})
    wrong = measure_recovery_order(ClaimTables(thresholds=cut), resampling)
    assert wrong.value < result.value - 0.5


def test_a3_leaves_out_what_has_no_order(world, resampling):
    make = world["thresholds"]
    tanh = make(readout="tanh", study="tanh", on_weakness=-1.0)
    flat = make(gamma=0.0, study="flat", on_weakness=-1.0)
    few = make(dimensions=(4,), study="few")
    true = make(features="hermite", study="true", on_weakness=-1.0, noise=0.0)
    tables = ClaimTables(thresholds=pd.concat([make(noise=0.0), tanh, flat, few, true]))
    result = measure_recovery_order(tables, resampling)
    assert (result.value, result.n_units) == (pytest.approx(1.0), 15)
    assert result.scope == "1 studies, d = 25 to 49, 5 teachers without an order left out"
    opposite = measure_recovery_order(tables, resampling, features="hermite")
    assert (opposite.value, opposite.n_units) == (pytest.approx(-1.0), 15)
    with pytest.raises(NoFitError, match="no teacher has three directions"):
        measure_recovery_order(ClaimTables(thresholds=make(grid=(1, 2))), resampling)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.05, "reproduced"),
        (1.6, "direction reproduced"),
        (0.7, "direction reproduced"),
        (5.0, "not reproduced"),
    ],
)
def test_a10_ratio(world, resampling, verdict, factor, expected):
    make = world["thresholds"]
    tanh = make(study="tanh", readout="tanh", factor=3.0 * factor, dimensions=(36,))
    tanh["half_recovery"] *= np.exp(0.1 * np.random.default_rng(0).normal(size=len(tanh)))
    tables = ClaimTables(thresholds=pd.concat([make(), tanh], ignore_index=True))
    result = measure_readout_ratio(tables, resampling)
    assert result.value == pytest.approx(factor, rel=0.08)
    assert result.n_units == 5 * 6
    assert verdict("A10", result) == expected


def test_a10_pairs_only_the_same_teacher(world, resampling):
    make = world["thresholds"]
    tanh = make(study="tanh", readout="tanh", dimensions=(36,))
    tanh["weight"] *= -1
    with pytest.raises(NoFitError, match="both tanh and identity"):
        measure_readout_ratio(ClaimTables(thresholds=pd.concat([make(), tanh])), resampling)
    with pytest.raises(NoFitError, match="both tanh and identity"):
        measure_readout_ratio(ClaimTables(thresholds=make()), resampling)
    other_gamma = make(study="tanh", readout="tanh", gamma=1.0)
    with pytest.raises(NoFitError, match="both tanh and identity"):
        measure_readout_ratio(ClaimTables(thresholds=pd.concat([make(), other_gamma])), resampling)


def test_a10_other_readouts_and_features(world, resampling):
    make = world["thresholds"]
    parts = [
        make(noise=0.0),
        make(study="tanh", readout="tanh", factor=3.3, dimensions=(36,), noise=0.0),
        make(study="relu", readout="relu", factor=4.5, dimensions=(36,), noise=0.0),
    ]
    true = {"features": "hermite", "noise": 0.0}
    parts += [
        make(study="quadratic", **true),
        make(study="quadratic_relu", readout="relu", factor=6.0, dimensions=(49,), **true),
    ]
    tables = ClaimTables(thresholds=pd.concat(parts, ignore_index=True))
    result = measure_readout_ratio(tables, resampling)
    assert result.value == pytest.approx(1.1)
    relu = result.beside["relu over identity"]
    assert [relu.value, relu.low, relu.high] == pytest.approx([1.5] * 3)
    assert (relu.n_units, relu.n_clusters) == (30, 5)
    relu = measure_readout_ratio(tables, resampling, features="hermite", readout="relu")
    assert (relu.value, relu.n_units, relu.scope) == (pytest.approx(2.0), 35, "d = 49")
    with pytest.raises(NoFitError, match="both tanh and identity"):
        measure_readout_ratio(tables, resampling, features="hermite")
    noisy = tables.thresholds.assign(
        noise=tables.thresholds["readout"].map({"identity": 0.0, "tanh": 0.5, "relu": 0.5})
    )
    with pytest.raises(NoFitError, match="both tanh and identity"):
        measure_readout_ratio(ClaimTables(thresholds=noisy), resampling)
