import numpy as np
import pytest
from scipy import stats
from scipy.stats import bootstrap

from spectral_laws.errors import NoFitError, NumericalError
from spectral_laws.fitting.bootstrap import (
    NOMINAL_CLUSTERS,
    Interval,
    bootstrap_interval,
    bootstrap_slope_interval,
    cluster_bootstrap_interval,
    coverage,
)
from spectral_laws.fitting.loglog import fit_loglog

SETTINGS = {"confidence": 0.95, "resamples": 500}


def power_law(rng, n, noise=0.5, slope=2.0):
    x = np.exp(rng.normal(size=n))
    return x, x**slope * np.exp(noise * rng.normal(size=n))


def slope_interval(x, y, seed=0, **settings):
    return bootstrap_slope_interval(
        x, y, generator=np.random.default_rng(seed), **{**SETTINGS, **settings}
    )


def mean_of(values):
    return lambda index: float(values[index].mean())


def test_slope_interval_agrees_with_scipy_percentile_bootstrap():
    x, y = power_law(np.random.default_rng(0), 60)
    ours = slope_interval(x, y, resamples=20_000)
    oracle = bootstrap(
        (np.log(x), np.log(y)),
        lambda a, b: np.polyfit(a, b, 1)[0],
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=5_000,
        random_state=np.random.default_rng(1),
    ).confidence_interval
    width = oracle.high - oracle.low
    assert ours.low == pytest.approx(oracle.low, abs=0.06 * width)
    assert ours.high == pytest.approx(oracle.high, abs=0.06 * width)


@pytest.mark.parametrize(("n", "lowest"), [(8, 0.9), (20, 0.905), (100, 0.91)])
def test_coverage_of_the_slope_interval(n, lowest):
    # 400 worlds: one standard error of the coverage is 0.011, the bounds allow for four of them
    rng = np.random.default_rng(5)
    covered = 0
    for world in range(400):
        interval = slope_interval(*power_law(rng, n), seed=world, resamples=400)
        covered += interval.low <= 2.0 <= interval.high
    assert lowest <= covered / 400 <= 0.99


def test_interval_narrows_with_confidence_and_with_n():
    rng = np.random.default_rng(2)
    x, y = power_law(rng, 400)

    def width(interval):
        return interval.high - interval.low

    assert width(slope_interval(x, y, confidence=0.8)) < width(slope_interval(x, y))
    ratio = width(slope_interval(x[:100], y[:100])) / width(slope_interval(x, y))
    assert 1.5 < ratio < 2.7  # sqrt(4) = 2


def test_exact_power_law_has_an_interval_of_rounding_width():
    x = np.arange(1.0, 20.0)
    interval = slope_interval(x, x**-1.5)
    assert interval.low == pytest.approx(-1.5)
    assert interval.high == pytest.approx(-1.5)


def test_drops_what_the_fit_drops():
    x, y = power_law(np.random.default_rng(3), 30)
    extended = slope_interval(np.append(x, [1.0, -1.0]), np.append(y, [-2.0, 3.0]))
    assert extended == slope_interval(x, y)


def test_memory_chunks_change_nothing_but_speed():
    x, y = power_law(np.random.default_rng(3), 30_000)  # 133 resamples per chunk
    interval = slope_interval(x, y, resamples=300)
    fit = fit_loglog(x, y)
    assert interval.low < fit.slope < interval.high
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * fit.stderr, rel=0.3)


def test_degenerate_resamples():
    # with 5 points of two distinct x, (4/5)^5 = 33 % of the resamples have no slope
    with pytest.raises(NoFitError, match="resamples have no value"):
        slope_interval([1, 1, 1, 1, 2], [1, 2, 3, 4, 5])
    # five distinct x: 5^-4 = 0.16 % have none, and they are left out
    interval = slope_interval([1, 2, 3, 4, 5], [1, 4, 9, 16, 25], resamples=20_000)
    assert interval.low == pytest.approx(2)
    with pytest.raises(NoFitError, match="4 of 4"):
        slope_interval([1, 2, 3, 4], [1, 2, 3, 4])


def test_same_generator_state_same_interval():
    x, y = power_law(np.random.default_rng(3), 30)
    assert slope_interval(x, y, seed=1) == slope_interval(x, y, seed=1)
    assert slope_interval(x, y, seed=1) != slope_interval(x, y, seed=2)


def test_mean_interval_is_the_normal_one():
    values = np.random.default_rng(4).normal(3, 2, size=400)
    interval = bootstrap_interval(
        values,
        np.mean,
        confidence=0.9,
        resamples=4000,
        generator=np.random.default_rng(0),
    )
    half = 1.645 * values.std(ddof=1) / 20
    assert interval.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_values_interval_needs_two_finite_values():
    settings = {**SETTINGS, "generator": np.random.default_rng(0)}
    with pytest.raises(NoFitError, match="1 value"):
        bootstrap_interval([1.0], np.median, **settings)
    with pytest.raises(NumericalError):
        bootstrap_interval([1.0, np.inf, 2.0], np.median, **settings)


@pytest.mark.slow
def test_coverage_of_the_cluster_interval_where_pairs_would_fail():
    # 20 groups of 15 rows, most of the variance between groups: taking rows as independent would
    # give intervals about four times too narrow
    rng = np.random.default_rng(6)
    labels = np.repeat(np.arange(20), 15)
    covered = by_rows = 0
    for world in range(300):
        values = rng.normal(size=20)[labels] + 0.3 * rng.normal(size=300)
        generator = np.random.default_rng(world)
        interval = cluster_bootstrap_interval(
            labels, mean_of(values), confidence=0.95, resamples=200, generator=generator
        )
        covered += interval.low <= 0 <= interval.high
        if world >= 100:
            continue
        naive = cluster_bootstrap_interval(
            np.arange(300), mean_of(values), confidence=0.95, resamples=200, generator=generator
        )
        by_rows += naive.low <= 0 <= naive.high
    assert 0.895 <= covered / 300 <= 0.99
    assert by_rows / 100 < 0.6


def test_interval_of_few_units_is_the_expanded_percentile_interval():
    # resampled means of 5 normal values are nearly normal: the interval is close to Student's
    values = np.array([-1.2, -0.4, 0.1, 0.5, 1.1])
    settings = {"confidence": 0.8, "resamples": 20_000}
    student = 1.533 * values.std(ddof=1) / np.sqrt(5)
    intervals = [
        cluster_bootstrap_interval(
            np.arange(5), mean_of(values), generator=np.random.default_rng(0), **settings
        ),
        bootstrap_interval(values, np.mean, generator=np.random.default_rng(0), **settings),
    ]
    for interval in intervals:
        assert interval.low == pytest.approx(values.mean() - student, abs=0.05 * student)
        assert interval.high == pytest.approx(values.mean() + student, abs=0.05 * student)


def test_a_resample_takes_whole_clusters_and_as_many_as_there_are():
    labels = np.array(["b", "a", "c", "a", "b", "b"])
    sizes = {"a": 2, "b": 3, "c": 1}
    seen = []

    def record(index):
        drawn = {name: int(np.sum(labels[index] == name)) for name in sizes}
        assert all(drawn[name] % size == 0 for name, size in sizes.items())
        seen.append(sum(drawn[name] // size for name, size in sizes.items()))
        return 0.0

    cluster_bootstrap_interval(labels, record, generator=np.random.default_rng(0), **SETTINGS)
    assert set(seen) == {3}


def test_every_stratum_costs_a_degree_of_freedom():
    values = np.random.default_rng(3).normal(size=6)
    seen = []

    def mean(index):
        seen.append(values[index].mean())
        return float(seen[-1])

    interval = cluster_bootstrap_interval(
        np.arange(6), mean, strata=np.arange(6) % 2, generator=np.random.default_rng(4), **SETTINGS
    )
    units = 5  # six clusters in two strata
    tail = stats.norm.sf(np.sqrt(units / (units - 1)) * stats.t.isf(0.025, units - 1))
    assert [interval.low, interval.high] == pytest.approx(np.quantile(seen, [tail, 1 - tail]))


def test_strata_keep_their_number_of_clusters():
    labels = np.arange(12)
    strata = np.repeat([0, 1, 2], 4)

    def count(index):
        return float(np.ptp(np.bincount(strata[index], minlength=3)))

    generator = np.random.default_rng(0)
    kept = cluster_bootstrap_interval(labels, count, strata=strata, generator=generator, **SETTINGS)
    free = cluster_bootstrap_interval(labels, count, generator=generator, **SETTINGS)
    assert kept == Interval(0.0, 0.0)
    assert free.high > 0


def test_too_few_clusters_or_values():
    settings = {**SETTINGS, "generator": np.random.default_rng(0)}
    values = np.arange(6.0)
    with pytest.raises(NoFitError, match="2 independent"):
        cluster_bootstrap_interval([0, 0, 0, 1, 1, 1], mean_of(values), **settings)
    with pytest.raises(NoFitError, match=r"1 independent repetition\(s\) of a kind"):
        cluster_bootstrap_interval(np.arange(4), mean_of(values), strata=[0, 0, 0, 1], **settings)
    with pytest.raises(ValueError, match="more than one stratum"):
        cluster_bootstrap_interval(
            [0, 0, 1, 1, 2, 2], mean_of(values), strata=[0, 1, 0, 0, 1, 1], **settings
        )
    with pytest.raises(NoFitError, match="have no value"):
        cluster_bootstrap_interval(np.arange(6), lambda index: float("nan"), **settings)


def test_an_interval_is_ordered():
    with pytest.raises(ValueError, match="low <= high"):
        Interval(1.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "strata", "skewed"), [(3, 1, True), (8, 2, False)])
def test_tabulated_coverage_is_that_of_the_interval(n, strata, skewed):
    # 400 worlds: one standard error is at most 0.024, the tolerance three of them
    rng = np.random.default_rng(8)
    covered = 0
    for world in range(400):
        z = rng.normal(size=n)
        interval = cluster_bootstrap_interval(
            np.arange(n), mean_of(np.exp(z) - np.exp(0.5) if skewed else z), confidence=0.95,
            resamples=200, strata=np.arange(n) % strata, generator=np.random.default_rng(world),
        )  # fmt: skip
        covered += interval.low <= 0 <= interval.high
    expected = coverage(n, n // strata)[0 if skewed else 1]
    error = np.sqrt(expected * (1 - expected) / 400)
    assert covered / 400 == pytest.approx(expected, abs=3 * error)


def test_coverage_rises_with_clusters_and_is_nominal_below_ten():
    for count in (1, 2, 5, 17):
        shares = [coverage(count * n, n) for n in range(3, NOMINAL_CLUSTERS)]
        assert shares == sorted(shares)
        assert all(skewed < gaussian < 0.95 for skewed, gaussian in shares)
        assert coverage(count * NOMINAL_CLUSTERS, NOMINAL_CLUSTERS) is None
    assert coverage(7) == coverage(7, 7) != coverage(14, 7)
    assert coverage(10) is None
