import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spectral_laws.errors import NumericalError
from spectral_laws.plotting.tables import (
    seed_count,
    shorten,
    study_name,
    summarise_seeds,
)


def frame(**groups):
    return pd.DataFrame(
        [(name, value) for name, values in groups.items() for value in values],
        columns=["group", "value"],
    )


def test_interval_is_students_interval_of_the_mean():
    values = {"a": [0.2, 0.5, 0.3, 0.4, 0.9], "b": [1.0, 1.5, 1.25]}
    summary = summarise_seeds(frame(**values), ["group"], "value", confidence=0.9)
    for row in summary.itertuples():
        sample = np.array(values[row.group])
        low, high = stats.t.interval(0.9, len(sample) - 1, sample.mean(), stats.sem(sample))
        np.testing.assert_allclose([row.centre, row.low, row.high], [sample.mean(), low, high])
        assert row.seeds == len(sample)


def test_logarithmic_interval_is_of_the_geometric_mean():
    sample = [1e-3, 1e-2, 3e-2, 0.2]
    summary = summarise_seeds(frame(a=sample), ["group"], "value", confidence=0.95,
                              logarithmic=True).iloc[0]  # fmt: skip
    logs = np.log(sample)
    low, high = np.exp(stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs)))
    np.testing.assert_allclose(
        summary[["centre", "low", "high"]].astype(float), [stats.gmean(sample), low, high]
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.55, 0.99))
def test_interval_holds_the_mean_and_keeps_its_bounds(values, confidence):
    row = summarise_seeds(
        frame(a=values), ["group"], "value", confidence=confidence, bounds=(0, 1)
    ).iloc[0]
    assert 0 <= row["low"] <= row["centre"] + 1e-12
    assert row["centre"] - 1e-12 <= row["high"] <= 1
    if len(values) == 1:
        assert row["low"] == row["centre"] == row["high"]


@pytest.mark.parametrize(("bad", "logarithmic"), [(np.nan, False), (np.inf, False), (0.0, True)])
def test_bad_values_stop_with_the_column(bad, logarithmic):
    with pytest.raises(NumericalError, match="column 'value'"):
        summarise_seeds(
            frame(a=[1.0, bad]), ["group"], "value", confidence=0.9, logarithmic=logarithmic
        )


@given(st.text(max_size=80), st.integers(8, 40))
def test_shortened_names_fit_and_keep_both_ends(name, limit):
    short = shorten(name, limit=limit)
    assert len(short) <= limit
    if len(name) <= limit:
        assert short == name
    else:
        start, end = short.split("\u2026") if name.count("\u2026") == 0 else ("", "")
        assert name.startswith(start)
        assert name.endswith(end)


def test_words():
    assert seed_count(pd.DataFrame({"seed": [0, 0]})) == "1 seed"
    assert seed_count(pd.DataFrame({"seed": [0, 3]})) == "2 seeds"
    assert study_name("linear") == "linear: "
    assert study_name("quadratic_with_long_name").endswith(":\n")
