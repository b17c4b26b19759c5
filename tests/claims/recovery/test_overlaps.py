from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.recovery.overlaps import (
    measure_angle_decay,
    measure_sharp_error,
    measure_smoothing,
    measure_transition,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError

SIZES = np.geomspace(100, 3e6, 40)


def tables_of(world, decay=1.0, chance=0.01, noise=0.0, **settings):
    thresholds = world["thresholds"](**settings)
    directions = world["directions"](
        thresholds, sizes=SIZES, decay=decay, chance=chance, noise=noise
    )
    return ClaimTables(thresholds=thresholds, directions=directions)


@pytest.mark.parametrize(
    ("decay", "chance", "expected"),
    [
        (1.5, 0.01, "reproduced"),  # 1 - cos^2 = 1/16 at 4 n*
        (1.0, 0.2, "not reproduced"),  # visible before the transition
        (0.3, 0.01, "not reproduced"),  # smeared after it
    ],
)
def test_a2_sharpness(world, resampling, verdict, decay, chance, expected):
    result = measure_transition(tables_of(world, decay, chance), resampling)
    assert verdict("A2", result) == expected


def test_a2_is_the_smaller_share(world, resampling):
    tables = tables_of(world, decay=1.0, noise=0.05)
    merged = tables.directions.merge(tables.thresholds)
    ratio = merged["sample_size"] / merged["half_recovery"]
    hidden = (merged["cos2"][ratio <= 0.25] <= 0.1).mean()
    recovered = (merged["cos2"][ratio >= 4] >= 0.9).mean()
    assert recovered < hidden
    result = measure_transition(tables, resampling)
    assert result.value == pytest.approx(recovered)
    shares = {name: (one.value, one.n_units) for name, one in result.beside.items()}
    assert shares == {
        "share hidden well below n*": (pytest.approx(hidden), int((ratio <= 0.25).sum())),
        "share recovered well above n*": (pytest.approx(recovered), int((ratio >= 4).sum())),
    }
    assert result.low <= result.value <= result.high


def test_a2_counts_directions_beyond_the_grid(world, resampling):
    # every n* above the grid: all sizes up to a quarter of the largest are surely well below, and
    # nothing is known above
    thresholds = world["thresholds"](grid=(1, 2))
    directions = world["directions"](thresholds, sizes=SIZES)
    with pytest.raises(NoFitError, match="0 well above") as error:
        measure_transition(ClaimTables(thresholds=thresholds, directions=directions), resampling)
    per_curve = int(np.sum(SIZES[-1] / 4 >= SIZES))
    assert f"{per_curve * len(thresholds)} overlaps well below" in str(error.value)
    # the other end
    thresholds = world["thresholds"](grid=(1e8, 1e9))
    directions = world["directions"](thresholds, sizes=SIZES)
    with pytest.raises(NoFitError, match="0 overlaps well below") as error:
        measure_transition(ClaimTables(thresholds=thresholds, directions=directions), resampling)
    per_curve = int(np.sum(4 * SIZES[0] <= SIZES))
    assert f"{per_curve * len(thresholds)} well above" in str(error.value)


def test_a2_ignores_degree_1_and_other_readouts_and_features(world, resampling):
    main = tables_of(world, decay=1.5)
    other = [
        tables_of(world, chance=0.5, study="linear", degree=1),
        tables_of(world, chance=0.5, study="tanh", readout="tanh"),
        tables_of(world, decay=0.3, study="true", features="hermite"),
    ]
    both = ClaimTables(
        thresholds=pd.concat([main.thresholds, *(t.thresholds for t in other)]),
        directions=pd.concat([main.directions, *(t.directions for t in other)]),
    )
    expected = measure_transition(main, resampling)
    result = measure_transition(both, resampling)
    assert (result.value, result.n_units) == (expected.value, expected.n_units)
    alone = measure_transition(other[-1], resampling, features="hermite")
    true = measure_transition(both, resampling, features="hermite")
    assert (true.value, true.n_units) == (alone.value, alone.n_units)
    assert true.value < result.value
    with pytest.raises(NoFitError, match="0 overlaps well below"):
        measure_transition(main, resampling, features="hermite")


@pytest.mark.parametrize(
    ("decay", "expected"),
    [(1.0, "reproduced"), (0.5, "direction reproduced"), (2.0, "direction reproduced")],
)
def test_a4_slope(world, resampling, verdict, decay, expected):
    result = measure_angle_decay(tables_of(world, decay, noise=0.1), resampling)
    # 1 - sqrt(1 - x) = x/2 + x^2/8: a little steeper than x itself at 4 n*
    assert result.value == pytest.approx(-decay, abs=0.05)
    assert verdict("A4", result) == expected


def test_a4_of_true_features_leaves_out_degree_1(world, resampling):
    parts = [
        tables_of(world, decay=1.0),
        tables_of(world, decay=0.5, study="true", features="hermite"),
        tables_of(world, decay=2.0, study="linear", features="hermite", degree=1),
    ]
    tables = ClaimTables(
        thresholds=pd.concat([t.thresholds for t in parts]),
        directions=pd.concat([t.directions for t in parts]),
    )
    assert measure_angle_decay(tables, resampling).value == pytest.approx(-1.0, abs=0.02)
    true = measure_angle_decay(tables, resampling, features="hermite")
    assert true.value == pytest.approx(-0.5, abs=0.02)


def test_a4_flat_angles_are_not_reproduced(world, resampling, verdict):
    tables = tables_of(world)
    flat = tables.directions.copy()
    rng = np.random.default_rng(0)
    flat["cos2"] = 0.95 + 0.01 * rng.normal(size=len(flat))
    result = measure_angle_decay(
        ClaimTables(thresholds=tables.thresholds, directions=flat), resampling
    )
    assert abs(result.value) < 0.05
    growing = flat.assign(cos2=1 - 1e-8 * flat["sample_size"])
    worse = measure_angle_decay(
        ClaimTables(thresholds=tables.thresholds, directions=growing), resampling
    )
    assert worse.value == pytest.approx(1.0, abs=0.05)
    assert verdict("A4", worse) == "not reproduced"


def test_a4_uses_points_beyond_four_times_half_recovery_only(world, resampling):
    tables = tables_of(world)
    merged = tables.directions.merge(tables.thresholds)
    near = (merged["sample_size"] < 4 * merged["half_recovery"]).to_numpy()
    spoiled = tables.directions.copy()
    spoiled.loc[near, "cos2"] = 0.999999
    result = measure_angle_decay(
        ClaimTables(thresholds=tables.thresholds, directions=spoiled), resampling
    )
    assert result.value == measure_angle_decay(tables, resampling).value
    assert result.n_units == int((~near).sum())


def test_a4_needs_two_points(world, resampling):
    thresholds = world["thresholds"]()
    directions = world["directions"](thresholds, sizes=SIZES[:3])
    with pytest.raises(NoFitError, match="no direction has two sample sizes"):
        measure_angle_decay(ClaimTables(thresholds=thresholds, directions=directions), resampling)


@pytest.mark.parametrize(("slope", "expected"), [(-0.4, "reproduced"), (0.4, "not reproduced")])
def test_a8_slope_of_the_width(world, resampling, verdict, slope, expected):
    result = measure_smoothing(ClaimTables(directions=world["widths"](slope)), resampling)
    assert result.value == pytest.approx(slope, abs=0.05)
    assert result.low < slope < result.high
    assert verdict("A8", result) == expected


def test_a8_takes_one_study_of_degree_1_and_fixed_width(world, resampling):
    others = [
        world["widths"](0.4, study="short", dimensions=(25, 50, 100)),
        world["widths"](0.4, study="growing", width=None, dimensions=(100, 400, 900)),
        world["widths"](0.4, study="true", degree=2, dimensions=(64, 100, 400)),
    ]
    tables = ClaimTables(directions=pd.concat([*others, world["widths"](-0.4)]))
    result = measure_smoothing(tables, resampling)
    assert result.value == pytest.approx(-0.4, abs=0.05)
    assert result.n_units == 20
    assert result.scope == "study smoothing, d = [25, 50, 100, 200]"
    # From 0.1 to 0.9 of a curve that is linear in log n
    width = result.beside["width in log n at d = 200"]
    assert (width.value, width.n_units) == (pytest.approx(4 - 0.4 * np.log(4), abs=0.1), 5)
    true = measure_smoothing(tables, resampling, features="hermite")
    assert true.value == pytest.approx(0.4, abs=0.05)
    assert true.scope == "study true, d = [64, 100, 400]"


def test_a8_leaves_out_dimensions_outside_the_grid(world, resampling):
    directions = world["widths"](-0.4)
    hidden = directions["dimension"] == 25
    directions.loc[hidden, "cos2"] = directions.loc[hidden, "cos2"].clip(lower=0.12)
    result = measure_smoothing(ClaimTables(directions=directions), resampling)
    assert result.n_units == 15
    assert "d = [50, 100, 200], no crossing inside the grid at d = [25]" in result.scope
    directions.loc[directions["dimension"] == 200, "cos2"] = 0.05
    with pytest.raises(NoFitError, match=r"d = \[50, 100\], no crossing .* at d = \[25, 200\]"):
        measure_smoothing(ClaimTables(directions=directions), resampling)


def test_a8_one_teacher_above_the_level_by_chance_keeps_its_dimension(world, resampling):
    directions = world["widths"](-0.4, noise=0.0)
    lucky = (directions["dimension"] == 25) & (directions["seed"] == 1)
    directions.loc[lucky, "cos2"] = directions.loc[lucky, "cos2"].clip(lower=0.15)
    result = measure_smoothing(ClaimTables(directions=directions), resampling)
    assert result.n_units == 20
    mean = directions[directions["dimension"] == 25].groupby("sample_size")["cos2"].mean()
    start = np.interp(0.1, mean, np.log(mean.index))  # the mean rises from 0.03, not from 0
    width = np.log(1e4) + 0.5 * (4 - 0.4 * np.log(0.5)) - start
    assert result.beside["width in log n at d = 25"].value == pytest.approx(width, abs=1e-6)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(0.03, "reproduced"), (0.1, "direction reproduced"), (0.3, "not reproduced")],
)
def test_a12_median_over_teachers_of_the_largest_error(world, resampling, verdict, error, expected):
    tables = tables_of(world, dimensions=(100, 200), seeds=5)
    directions = tables.directions.copy()
    recovered = directions["cos2"] >= 0.5
    directions["predicted_cos2"] = directions["cos2"] - 0.01
    directions.loc[~recovered, "predicted_cos2"] = 0.45  # hidden directions are not judged
    large = directions["dimension"] == 200
    for seed, size in ((0, error - 0.01), (1, error), (2, error + 0.01), (3, 0.4)):
        place = directions[recovered & large & (directions["seed"] == seed)].index[7]
        directions.loc[place, "predicted_cos2"] = directions.loc[place, "cos2"] - size
    result = measure_sharp_error(ClaimTables(directions=directions), resampling)
    assert result.value == pytest.approx(error)
    assert (result.low, result.high) == (pytest.approx(0.01), pytest.approx(0.4))
    assert (result.n_units, result.n_clusters) == (5, 5)
    assert result.scope == "d = 200, D = 20100"
    beside = {name: (one.value, one.n_units) for name, one in result.beside.items()}
    count = int((recovered & large).sum())
    mean = 0.01 + (3 * error + 0.4 - 4 * 0.01) / count
    few = int((recovered & ~large).sum())
    assert beside == {
        "smallest of all teachers": (pytest.approx(0.01), 5),
        "largest of all teachers": (pytest.approx(0.4), 5),
        "mean over directions": (pytest.approx(mean), count),
        "largest at d = 100": (pytest.approx(0.01), few),
        "mean at d = 100": (pytest.approx(0.01), few),
    }
    assert not any(one.judged or one.low is not None for one in result.beside.values())
    assert verdict("A12", replace(result, low=error, high=error)) == expected


def test_a12_takes_the_largest_dimension_below_the_limit(world, resampling):
    parts = [
        tables_of(world, dimensions=(25, 49)),
        tables_of(world, dimensions=(36, 64), study="true", features="hermite"),
    ]
    tables = ClaimTables(directions=pd.concat([t.directions for t in parts], ignore_index=True))
    result = measure_sharp_error(tables, resampling)
    assert result.value == pytest.approx(0.02)
    assert result.scope == "d = 49, D = 1225"
    true = measure_sharp_error(tables, resampling, features="hermite")
    assert true.scope == "d = 64, D = 2080"
    hidden = ClaimTables(directions=parts[0].directions.assign(cos2=0.4, predicted_cos2=0.4))
    with pytest.raises(NoFitError, match="no direction is recovered"):
        measure_sharp_error(hidden, resampling)
