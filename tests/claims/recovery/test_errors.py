from functools import partial

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.recovery.errors import measure_error_exponent, measure_theory
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError
from spectral_laws.recovery.scaling_laws import tail_mse
from spectral_laws.recovery.teacher import draw_weights

STEEP, FLAT = (partial(measure_error_exponent, steep=steep) for steep in (True, False))

CASES = {
    "A5": (STEEP, {"gamma": 1.0, "law": "mse"}),
    "A6": (FLAT, {"gamma": 0.4, "law": "explained", "width": 60}),
}


def tail_exponent(world, *, gamma, law, width=30, dimension=64):
    """Slope of the tail sum's law over the window, with the recovery room's functions."""
    low, high = world["window"](width, gamma, dimension)
    features = dimension * (dimension + 1) // 2
    sizes = np.geomspace(low / 8, high * 8, 40)
    inside = sizes[(sizes >= low) & (sizes <= high)]
    grid = np.geomspace(inside[0], inside[-1], 2000)
    weights = draw_weights(width, gamma, np.random.default_rng(0))
    tail = tail_mse(grid, features, weights)
    return np.polyfit(np.log(grid), np.log(tail if law == "mse" else 1 - tail), 1)[0]


@pytest.mark.parametrize("claim", CASES)
@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.05, "reproduced"), (0.2, "direction reproduced"), (0.6, "not reproduced")],
)
def test_difference_of_exponents(world, resampling, verdict, claim, difference, expected):
    measure, case = CASES[claim]
    tail = tail_exponent(world, **case)
    metrics = world["metrics"](exponent=tail + difference, **case)
    result = measure(ClaimTables(metrics=metrics), resampling)
    assert result.value == pytest.approx(difference, abs=0.03)
    assert result.low - 0.01 < difference < result.high + 0.01
    name = f"gamma{case['gamma']} d = 64"
    beside = {name: measurement.value for name, measurement in result.beside.items()}
    assert beside[f"exponent of the tail sum, {name}"] == pytest.approx(tail, abs=0.01)
    assert beside[f"exponent, {name}"] == pytest.approx(tail + difference, abs=0.03)
    assert verdict(claim, result) == expected


@pytest.mark.parametrize("claim", CASES)
def test_the_study_farthest_from_the_tail_sum_is_judged(world, resampling, claim):
    measure, case = CASES[claim]
    tail = tail_exponent(world, **case)
    metrics = pd.concat(
        [
            world["metrics"](exponent=tail + 0.1, noise=0.0, **case),
            world["metrics"](exponent=tail + 0.3, noise=0.0, dimension=81, **case),
        ]
    )
    result = measure(ClaimTables(metrics=metrics), resampling)
    assert [result.value, result.low, result.high] == pytest.approx([0.3] * 3, abs=0.01)
    # Five teachers at d = 81 make the value, five more at d = 64 stand beside.
    assert (result.n_units, result.n_clusters) == (5, 5)
    assert result.scope.startswith(f"gamma{case['gamma']} d = 81, ")
    assert sum(name.startswith("exponent, ") for name in result.beside) == 2


@pytest.mark.parametrize("claim", CASES)
def test_only_the_judged_teachers_make_the_interval(world, claim):
    measure, case = CASES[claim]
    tail = tail_exponent(world, **case)
    far = world["metrics"](exponent=tail + 0.3, **case)
    near = [
        world["metrics"](exponent=tail, seeds=12, **{**case, "study": "more"}),
        world["metrics"](exponent=tail, seeds=12, dimension=81, **case),
    ]
    alone, among = (
        measure(ClaimTables(metrics=metrics), Resampling(0.95, 200, np.random.default_rng(0)))
        for metrics in (far, pd.concat([far, *near]))
    )
    assert (among.low, among.high) == (alone.low, alone.high)
    assert (among.n_units, among.n_clusters, among.n_stratum) == (5, 5, 5)


def test_a_window_without_an_exponent_does_not_hide_the_others(world, resampling):
    measure, case = CASES["A6"]
    good = world["metrics"](exponent=tail_exponent(world, **case) + 0.1, noise=0.0, **case)
    lost = world["metrics"](exponent=0.3, **{**case, "study": "lost"}).assign(mse=1.2)
    result = measure(ClaimTables(metrics=pd.concat([good, lost])), resampling)
    assert result.value == pytest.approx(0.1, abs=0.01)
    assert result.scope.endswith("no exponent in lost d = 64")


@pytest.mark.parametrize("claim", CASES)
def test_second_layer_and_features_select_their_rows(world, resampling, claim):
    measure, case = CASES[claim]
    tail = tail_exponent(world, **case)
    metrics = world["metrics"](exponent=tail + 0.1, noise=0.0, **case)
    true = world["metrics"](
        exponent=tail - 0.1, noise=0.0, features="hermite", **{**case, "study": "true"}
    )
    tables = ClaimTables(metrics=pd.concat([metrics, true], ignore_index=True))
    assert measure(tables, resampling).value == pytest.approx(0.1, abs=0.01)
    assert measure(tables, resampling, features="hermite").value == pytest.approx(-0.1, abs=0.01)
    flat = measure(tables, resampling, second_layer="same_sample")
    assert flat.value == pytest.approx(-tail, abs=0.01)  # a constant error has exponent 0
    with pytest.raises(NoFitError, match="required gamma and features"):
        measure(ClaimTables(metrics=metrics), resampling, features="hermite")


@pytest.mark.parametrize("claim", CASES)
def test_gamma_and_readout_select_the_study(world, resampling, claim):
    measure, case = CASES[claim]
    other = CASES["A6" if claim == "A5" else "A5"][1]
    metrics = world["metrics"](exponent=0.3, **other)
    with pytest.raises(NoFitError, match="no study with the required gamma"):
        measure(ClaimTables(metrics=metrics), resampling)
    nonlinear = world["metrics"](exponent=0.1, readout="tanh", **case)
    with pytest.raises(NoFitError, match="identity readout"):
        measure(ClaimTables(metrics=nonlinear), resampling)
    flat = world["metrics"](exponent=0.1, **{**case, "gamma": 0.0})
    with pytest.raises(NoFitError, match="required gamma"):
        measure(ClaimTables(metrics=flat), resampling)


def test_the_window_needs_three_sizes_and_eighteen_directions(world, resampling):
    measure, case = CASES["A5"]
    metrics = world["metrics"](exponent=-0.6, **case)
    sizes = np.unique(metrics["sample_size"])
    low, high = world["window"](30, 1.0, 64)
    inside = sizes[(sizes >= low) & (sizes <= high)]
    outside = metrics[~metrics["sample_size"].isin(inside)]
    for count, fits in ((2, False), (3, True)):
        kept = metrics[metrics["sample_size"].isin(inside[:count])]
        tables = ClaimTables(metrics=pd.concat([kept, outside]))
        if fits:
            assert "3 sizes over a factor" in measure(tables, resampling).scope
        else:
            with pytest.raises(NoFitError, match="3 sample sizes"):
                measure(tables, resampling)
    measure(ClaimTables(metrics=world["metrics"](exponent=-0.6, width=18, **case)), resampling)
    narrow = world["metrics"](exponent=-0.6, width=17, **case)
    with pytest.raises(NoFitError, match="no study"):
        measure(ClaimTables(metrics=narrow), resampling)


def test_explained_share_below_zero_is_no_value(world, resampling):
    measure, case = CASES["A6"]
    metrics = world["metrics"](exponent=0.3, **case)
    metrics.loc[metrics["mse"] != 0.9, "mse"] = 1.2
    with pytest.raises(NoFitError, match="no law has an exponent"):
        measure(ClaimTables(metrics=metrics), resampling)


def test_too_few_seeds(world, resampling):
    measure, case = CASES["A5"]
    metrics = world["metrics"](exponent=-0.6, seeds=2, **case)
    with pytest.raises(NoFitError, match="independent repetition"):
        measure(ClaimTables(metrics=metrics), resampling)


@pytest.mark.parametrize(("steep", "gamma"), [(True, 0.8), (False, 0.4)])
def test_the_sharp_theory_of_wider_teachers(world, resampling, steep, gamma):
    table = world["error_exponents"](gap=-0.03)
    narrow = table["n_directions"] == 30  # directions 3 to 6: too narrow a window for a law
    table.loc[narrow & (table["second_layer"] != "tail"), "exponent"] += 1
    tables = ClaimTables(error_exponents=table)
    result = measure_theory(tables, resampling, steep=steep)
    assert result.value == pytest.approx(-0.03)
    assert not result.judged
    assert result.low is None
    assert all(name.startswith(f"exponent at gamma {gamma:g}, ") for name in result.beside)
    values = {name.split(", ", 1)[1]: one.value for name, one in result.beside.items()}
    asymptotic = 1 / (2 * gamma) - 1
    at_largest = asymptotic + 0.1 - 0.2 / np.log(60 / 3)
    assert values == pytest.approx(
        {
            "minus the tail sum's, d1 = 30": 0.97,
            "minus the tail sum's, d1 = 100": -0.03,
            "minus the tail sum's, d1 = 300": -0.03,
            "d1 = 300": at_largest,
            "d1 = 300, same sample": at_largest + 0.2,
            "extrapolated": asymptotic + 0.1,
            "asymptotic law": asymptotic,
        }
    )


def test_the_sharp_theory_farthest_from_the_tail_sum_is_shown(world, resampling):
    table = world["error_exponents"](gammas=(0.8, 1.5))
    far = (table["gamma"] == 0.8) & (table["second_layer"] == "tail")
    table.loc[far, "exponent"] += 0.1
    result = measure_theory(ClaimTables(error_exponents=table), resampling, steep=True)
    assert result.value == pytest.approx(0.01 - 0.1)
    with pytest.raises(NoFitError, match="no such gamma"):
        measure_theory(ClaimTables(error_exponents=table), resampling, steep=False)
