import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.plotting.power_fits import Bootstrap, crossing_fit, mean_fit, seed_slope

BOOTSTRAP = Bootstrap(0.95, 200)


def table(seeds, exponent, *, noise=0.0, dimensions=(10, 20, 40, 80)):
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        [
            (d, s, 3 * d**exponent * np.exp(noise * generator.standard_normal()))
            for d in dimensions
            for s in range(seeds)
        ],
        columns=["dimension", "seed", "value"],
    )


@given(st.floats(-3, 3))
def test_an_exact_power_is_found(exponent):
    fit = mean_fit(table(1, exponent), "value", bootstrap=None)
    assert fit.slope == pytest.approx(exponent, abs=1e-9)
    np.testing.assert_allclose(fit.line([5.0]), 3 * 5.0**exponent, rtol=1e-8)
    assert fit.interval is None
    assert "no interval" in fit.label()


def test_points_are_means_and_the_interval_holds_the_slope():
    rows = table(5, -1.0, noise=0.1)
    fit = mean_fit(rows, "value", bootstrap=BOOTSTRAP)
    means = rows.groupby("dimension")["value"].mean()
    np.testing.assert_allclose(fit.points["centre"], means)
    assert fit.slope == pytest.approx(np.polyfit(np.log(means.index), np.log(means), 1)[0])
    assert fit.interval[0] < fit.slope < fit.interval[1]
    assert (fit.points["low"] < fit.points["centre"]).all()
    assert (fit.points["centre"] < fit.points["high"]).all()
    low, high = (f"{end:.2f}".replace("-", "\N{MINUS SIGN}") for end in fit.interval)
    assert fit.label().endswith(f"[{low}, {high}]")


def test_the_same_table_gives_the_same_interval():
    rows = table(5, 2.0, noise=0.3)
    first, second = (mean_fit(rows, "value", bootstrap=BOOTSTRAP) for _ in range(2))
    assert first.interval == second.interval


def test_two_seeds_give_no_interval():
    fit = mean_fit(table(2, 1.0, noise=0.1), "value", bootstrap=BOOTSTRAP)
    assert fit.interval is None
    np.testing.assert_array_equal(fit.points["low"], fit.points["high"])


def test_values_that_are_not_positive_are_named_and_not_fitted():
    rows = table(3, 1.0)
    rows.loc[rows["dimension"] == 20, "value"] = -1.0
    fit = mean_fit(rows, "value", bootstrap=BOOTSTRAP)
    assert fit.missing == [20]
    assert fit.slope == pytest.approx(1.0)
    rows["value"] = rows["value"].where(rows["dimension"] == 80, -1.0)
    lonely = mean_fit(rows, "value", bootstrap=BOOTSTRAP)
    assert np.isnan(lonely.slope)
    assert lonely.label() == "no fit"


def test_crossings_of_the_mean_curve():
    # A logistic curve in log n, through 1/2 at n = 2 d^1.5; at d = 80 beyond the grid.
    rows = pd.DataFrame(
        [
            (d, seed, n, 1 / (1 + (2 * d**1.5 / n)) + shift)
            for d in (10, 20, 40, 80)
            for seed, shift in enumerate((-0.02, 0.0, 0.02))
            for n in np.geomspace(10, 1000, 60)
        ],
        columns=["dimension", "seed", "sample_size", "value"],
    )
    fit = crossing_fit(rows, "value", level=0.5, bootstrap=BOOTSTRAP)
    np.testing.assert_allclose(fit.points["x"], [10, 20, 40])
    np.testing.assert_allclose(fit.points["centre"], 2 * fit.points["x"] ** 1.5, rtol=0.01)
    assert fit.missing == [80]
    assert fit.slope == pytest.approx(1.5, abs=0.01)
    assert fit.interval[0] <= fit.slope <= fit.interval[1]


def test_width_between_two_crossings():
    # 1 / (1 + (m/n)^(1/w)) rises from 0.1 to 0.9 over a factor 81^w of n; w falls with log d.
    def w(d):
        return 1.5 - 0.2 * np.log(d)

    rows = pd.DataFrame(
        [
            (d, seed, n, 1 / (1 + (1e3 / n) ** (1 / w(d))))
            for d in (10, 20, 40)
            for seed in range(3)
            for n in np.geomspace(1, 1e6, 2000)
        ],
        columns=["dimension", "seed", "sample_size", "value"],
    )
    fit = crossing_fit(rows, "value", level=0.9, over=0.1, bootstrap=BOOTSTRAP)
    np.testing.assert_allclose(fit.points["centre"], 81 ** w(fit.points["x"]), rtol=1e-3)
    assert fit.slope == pytest.approx(-0.2 * np.log(81), abs=1e-3)
    lost = crossing_fit(
        rows[rows["sample_size"] < 3e3], "value", level=0.9, over=0.1, bootstrap=None
    )
    assert lost.missing == [10, 20, 40]  # 0.9 is not reached


def test_slope_of_the_mean_over_seeds():
    sizes = np.array([10.0, 30.0, 100.0])
    rows = pd.DataFrame(
        [(n, seed, factor * n**-0.5) for n in sizes for seed, factor in enumerate((1.0, 2.0, 3.0))],
        columns=["sample_size", "seed", "mse"],
    )
    slope, interval = seed_slope(rows, "mse", bootstrap=BOOTSTRAP)
    assert slope == pytest.approx(-0.5)
    np.testing.assert_allclose(interval, -0.5)
    assert seed_slope(rows[rows["seed"] < 2], "mse", bootstrap=BOOTSTRAP)[1] is None
    with pytest.raises(ValueError, match="duplicate"):
        seed_slope(pd.concat([rows, rows]), "mse", bootstrap=BOOTSTRAP)
