import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.errors import NumericalError
from spectral_laws.fitting.crossings import first_crossing

N = np.geomspace(10, 1e5, 9)


@given(st.floats(11, 0.9e5), st.floats(0.01, 0.5))
def test_exact_for_curves_linear_in_log_n(size, slope):
    values = 0.5 + slope * (np.log(N) - np.log(size))
    assert first_crossing(N, values, 0.5) == pytest.approx(size)


def test_first_of_several_crossings_between_the_right_neighbours():
    values = [0, 0.1, 0.7, 0.2, 0.1, 0.9, 1, 1, 1]
    assert N[1] < first_crossing(N, values, 0.5) < N[2]


def test_missing_where_it_starts_above_or_never_arrives():
    assert first_crossing(N, np.linspace(0.6, 1, 9), 0.5) is None
    assert first_crossing(N, np.linspace(0, 0.49, 9), 0.5) is None


def test_reaching_the_level_counts():
    assert first_crossing([1, 10], [0, 0.5], 0.5) == pytest.approx(10)


def test_bad_arguments():
    with pytest.raises(ValueError, match="increasing"):
        first_crossing([1, 1, 2], [0, 0, 1], 0.5)
    with pytest.raises(ValueError, match="one value per sample size"):
        first_crossing([1, 2, 3], [0, 1], 0.5)
    with pytest.raises(NumericalError):
        first_crossing([1, 2], [0, np.nan], 0.5)
