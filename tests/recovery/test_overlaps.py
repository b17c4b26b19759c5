"""Overlaps between teacher and estimate, and half-recovery."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.recovery.overlaps import (
    direction_cos2,
    feature_overlap,
    half_recovery,
    matched_overlap,
    n_recovered,
)


def rows(count, size, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, count)))[0].T


@given(seed=st.integers(0, 1000), angle=st.floats(0, math.pi / 2))
def test_direction_overlaps_of_a_known_angle(seed, angle):
    basis = rows(4, 12, seed)
    teacher = basis[:2]
    estimate = np.stack([math.cos(angle) * basis[0] + math.sin(angle) * basis[2], -basis[3]])
    expected = [math.cos(angle) ** 2, 0.0]
    np.testing.assert_allclose(direction_cos2(teacher, estimate), expected, atol=1e-12)
    np.testing.assert_allclose(
        matched_overlap(teacher, estimate), [abs(math.cos(angle)), 0.0], atol=1e-12
    )


def test_cos2_ignores_order_and_matched_overlap_does_not():
    basis = rows(3, 9, 1)
    swapped = basis[[1, 0, 2]]
    np.testing.assert_allclose(direction_cos2(basis, swapped), 1.0)
    np.testing.assert_allclose(matched_overlap(basis, swapped), [0, 0, 1], atol=1e-12)


@given(seed=st.integers(0, 1000), count=st.integers(1, 5))
def test_feature_overlap_bounds_and_invariance(seed, count):
    random = np.random.default_rng(seed)
    true, learned = random.standard_normal((40, 3)), random.standard_normal((40, count))
    value = feature_overlap(true, learned)
    assert 0.0 <= value <= min(count, 3) / 3 + 1e-12
    mixing = np.linalg.qr(random.standard_normal((count, count)))[0]
    assert feature_overlap(true, learned @ mixing) == pytest.approx(value, abs=1e-10)
    assert feature_overlap(true @ rows(3, 3, seed), learned) == pytest.approx(value, abs=1e-10)
    assert feature_overlap(true, true @ rows(3, 3, seed)) == pytest.approx(1.0)


def test_feature_overlap_of_orthogonal_features_is_zero():
    basis = rows(4, 10, 2).T
    assert feature_overlap(basis[:, :2], basis[:, 2:]) < 1e-20
    assert feature_overlap(basis[:, :2], basis[:, 1:3]) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="at least as many"):
        feature_overlap(np.ones((2, 3)), np.ones((2, 3)))


def test_n_recovered():
    assert n_recovered([0.9, 0.5, 0.49, 0.0]) == 2


@given(
    star=st.floats(20, 5000),
    slope=st.floats(0.05, 0.12),
    start=st.floats(1.5, 10),
    grid=st.integers(3, 30),
)
def test_half_recovery_of_a_line_in_log_n_is_exact(star, slope, start, grid):
    sizes = np.geomspace(start, 10_000, grid)
    curve = 0.5 + slope * np.log(sizes / star)
    half, censored = half_recovery(sizes, curve)
    assert censored == "no"
    assert half == pytest.approx(star, rel=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_half_recovery_lies_at_the_first_upward_crossing(values):
    sizes = 10.0 * 2.0 ** np.arange(len(values))
    half, censored = half_recovery(sizes, values)
    recovered = [value >= 0.5 for value in values]
    if recovered[0]:
        assert (half, censored) == (None, "below")
    elif not any(recovered):
        assert (half, censored) == (None, "above")
    else:
        first = recovered.index(True)
        assert censored == "no"
        assert sizes[first - 1] <= half * (1 + 1e-9)
        assert half <= sizes[first] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([], [], "at least one"),
        ([1, 2], [0.1], "one value per sample size"),
        ([2, 1], [0.1, 0.6], "increasing"),
        ([0, 1], [0.1, 0.6], "positive"),
    ],
)
def test_half_recovery_bad_arguments(sizes, values, message):
    with pytest.raises(ValueError, match=message):
        half_recovery(sizes, values)
