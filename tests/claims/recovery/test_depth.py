import math

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.recovery.depth import measure_kernel_gap
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


def spectral_curves(world, exponent, **study):
    return world["widths"](0.0, middle=exponent, start=100, **study)


def tables_of(world, *, kernel=2.0, spectral=1.0, noise=0.03, **baselines):
    return ClaimTables(
        directions=spectral_curves(world, spectral, noise=noise, dimensions=(25, 100, 400)),
        baselines=world["baselines"](kernel, noise=noise, **baselines),
    )


@pytest.mark.parametrize(
    ("kernel", "spectral", "expected"),
    [
        (2.0, 1.0, "reproduced"),
        (1.5, 1.0, "direction reproduced"),
        (1.0, 1.6, "not reproduced"),
    ],
)
def test_a7_difference_of_exponents(world, resampling, verdict, kernel, spectral, expected):
    result = measure_kernel_gap(tables_of(world, kernel=kernel, spectral=spectral), resampling)
    assert result.value == pytest.approx(kernel - spectral, abs=0.15)
    assert result.low < kernel - spectral < result.high
    ours = result.beside["exponent of the kernel, q = 1"]
    assert ours.value == pytest.approx(kernel, abs=0.05)
    assert ours.low < kernel < ours.high
    theirs = result.beside["exponent of the spectral method, q = 1"]
    assert theirs.value == pytest.approx(spectral, abs=0.15)
    assert (result.n_units, result.n_clusters) == (30, 30)
    assert verdict("A7", result) == expected


def test_a7_without_noise_is_exact(world, resampling):
    result = measure_kernel_gap(tables_of(world, noise=0.0), resampling)
    assert [result.value, result.low, result.high] == pytest.approx([1.0] * 3, abs=0.01)


def test_a7_crosses_the_mean_curve(world, resampling):
    # One teacher of d = 25 is above 1/2 by chance from the first sample size on: it has no
    # crossing, and the mean of the others' crossings would not see it.
    tables = tables_of(world, noise=0.0)
    directions = tables.directions.copy()
    lucky = (directions["dimension"] == 25) & (directions["seed"] == 0)
    directions.loc[lucky, "cos2"] = directions.loc[lucky, "cos2"].clip(lower=0.51)
    result = measure_kernel_gap(
        ClaimTables(directions=directions, baselines=tables.baselines), resampling
    )
    curves = directions[directions["dimension"] == 25]
    mean = curves.groupby("sample_size")["cos2"].mean()
    crossing = np.interp(0.5, mean.to_numpy(), np.log(mean.index))
    sizes = [crossing, *np.log(100 * np.array([100, 400]))]
    spectral = np.polyfit(np.log([25, 100, 400]), sizes, 1)[0]
    assert spectral > 1.01
    assert result.value == pytest.approx(2.0 - spectral, abs=0.01)


def test_a7_names_dimensions_without_a_crossing(world, resampling):
    tables = tables_of(world, dimensions=(10, 25, 50, 100), sizes=(5, 4000, 60))
    result = measure_kernel_gap(tables, resampling)
    scope = result.beside["exponent of the kernel, q = 1"].scope
    assert scope == "d = [10, 25, 50], no crossing inside the grid at d = [100]"
    assert result.n_units == 15 + 15
    short = tables_of(world, dimensions=(25, 50, 100), sizes=(5, 4000, 60))
    with pytest.raises(
        NoFitError, match=r"d = \[25, 50\], no crossing inside the grid at d = \[100"
    ):
        measure_kernel_gap(short, resampling)


def test_a7_takes_the_fixed_width_study_with_the_largest_dimension(world, resampling):
    tables = tables_of(world, noise=0.0)
    large = {"dimensions": (100, 400, 900), "noise": 0.0}
    others = [
        spectral_curves(world, 2.0, study="small", dimensions=(16, 25, 36, 64), noise=0.0),
        spectral_curves(world, 2.0, study="growing", width=None, **large),
        spectral_curves(world, 2.0, study="tanh", readout="tanh", **large),
    ]
    directions = pd.concat([*others, tables.directions], ignore_index=True)
    result = measure_kernel_gap(
        ClaimTables(directions=directions, baselines=tables.baselines), resampling
    )
    assert result.value == pytest.approx(1.0, abs=0.01)


def test_a7_beside_it_stand_the_exponents_of_degree_2(world, resampling):
    linear = tables_of(world)
    small = {"study": "depth2", "degree": 2, "dimensions": (6, 9, 12, 16)}
    counted = world["baselines"](1.0, law=lambda d: math.comb(d + 4, 4), noise=0.0, **small)
    tables = ClaimTables(
        directions=linear.directions,
        baselines=pd.concat([linear.baselines, counted], ignore_index=True),
        thresholds=world["thresholds"](width=20, dimensions=(45, 64, 90), noise=0.02),
    )
    found = measure_kernel_gap(tables, resampling).beside
    values = {name: measurement.value for name, measurement in found.items()}
    sizes = [math.comb(d + 4, 4) for d in (6, 9, 12, 16)]
    in_d = np.polyfit(np.log([6, 9, 12, 16]), np.log(sizes), 1)[0]
    assert values["exponent of the kernel, q = 2"] == pytest.approx(in_d, abs=0.05)
    assert values["the same in C(d + 4, 4)^(1/4) instead of d"] == pytest.approx(4.0, abs=0.05)
    # D = d (d + 1) / 2 grows a little slower than d^2
    expected = math.log((90 * 91) / (45 * 46)) / math.log(2)
    spectral = found["exponent of the spectral method, q = 2"]
    assert spectral.value == pytest.approx(expected, abs=0.03)
    assert (spectral.n_units, spectral.n_clusters) == (15 * 20, 15)
    alone = measure_kernel_gap(linear, resampling).beside
    assert set(found) - set(alone) == {name for name in found if "q = 1" not in name}


def test_a7_needs_both_tables(world, resampling):
    tables = tables_of(world)
    with pytest.raises(NoFitError, match="baselines table is absent"):
        measure_kernel_gap(ClaimTables(directions=tables.directions), resampling)
    with pytest.raises(NoFitError, match="directions table is absent"):
        measure_kernel_gap(ClaimTables(baselines=tables.baselines), resampling)
    growing = tables.directions.assign(n_directions=tables.directions["dimension"])
    with pytest.raises(NoFitError, match="widths asked for"):
        measure_kernel_gap(ClaimTables(directions=growing, baselines=tables.baselines), resampling)


def test_a7_methods_may_have_different_numbers_of_teachers(world, resampling):
    tables = tables_of(world, dimensions=(25, 100, 400))
    few = tables.baselines[tables.baselines["seed"] < 3]
    result = measure_kernel_gap(
        ClaimTables(directions=tables.directions, baselines=few), resampling
    )
    assert result.n_units == 9 + 15
    assert result.value == pytest.approx(1.0, abs=0.15)
    assert result.low < result.value < result.high
