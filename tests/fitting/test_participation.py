import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.errors import NoFitError, NumericalError
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound


def test_equal_values_count_all_and_one_value_counts_one():
    assert participation_ratio(np.full(7, 3.0)) == pytest.approx(7)
    assert participation_ratio([0, 5.0, 0]) == pytest.approx(1)
    assert participation_ratio([3.0, 1.0]) == pytest.approx(16 / 10)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=30), st.floats(1e-3, 1e3))
def test_lies_between_one_and_n_and_has_no_units(values, scale):
    if max(values) < 1e-6:
        return
    ratio = participation_ratio(values)
    assert 1 - 1e-12 <= ratio <= len(values) * (1 + 1e-12)
    assert participation_ratio(scale * np.array(values)) == pytest.approx(ratio)


def test_very_small_values_do_not_underflow():
    assert participation_ratio([1e-200, 1e-200]) == pytest.approx(2)


def test_refuses_what_is_no_spectrum():
    with pytest.raises(ValueError, match="not negative"):
        participation_ratio([1.0, -1.0])
    with pytest.raises(NoFitError, match="none of 2"):
        participation_ratio([0.0, 0.0])
    with pytest.raises(NumericalError):
        participation_ratio([1.0, np.nan])


def test_bound_at_two_and_four_in_closed_form():
    # zeta(2) = pi^2/6, zeta(4) = pi^4/90, zeta(8) = pi^8/9450
    assert participation_ratio_bound(2) == pytest.approx(2.5)
    assert participation_ratio_bound(4) == pytest.approx(9450 / 8100)


@given(st.floats(1.5, 6))
def test_bound_is_the_ratio_of_a_power_law(s):
    k = np.arange(1, 20_001, dtype=float)
    finite = participation_ratio(k**-s)
    assert participation_ratio_bound(s, n_terms=20_000) == pytest.approx(finite)
    assert finite <= participation_ratio_bound(s) * (1 + 1e-12)
    assert participation_ratio_bound(s, n_terms=10) <= finite


@pytest.mark.parametrize("exponent", [1.0, 0.4, -2.0])
def test_bound_is_infinite_where_the_sum_diverges(exponent):
    assert math.isinf(participation_ratio_bound(exponent))
    assert participation_ratio_bound(exponent, n_terms=5) <= 5
