"""Exponents of the test error from the sharp theory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table
from spectral_laws.recovery.error_exponents import (
    asymptotic_exponent,
    error_exponents,
    tabulate_error_exponents,
)
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.scaling_laws import asymptotic_mse
from spectral_laws.recovery.teacher import draw_weights, power_law_weights
from spectral_laws.recovery.theory import predict
from spectral_laws.rng import generator
from spectral_laws.settings.recovery import ErrorExponents

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ErrorExponents(gammas=(0.3, 1.0), widths=(16,), first=2, last_share=0.5, seeds=2)


@pytest.fixture(scope="module")
def table():
    return tabulate_error_exponents(SETTINGS, seed=5)


@pytest.mark.parametrize("gamma", [0.2, 0.4, 0.8, 1.5])
def test_asymptotic_exponent_is_that_of_the_law(gamma):
    where = {"dimension": 1000, "degree": 1, "n_directions": 1000, "gamma": gamma}
    sizes = np.array([1e5, 4e5])
    mse = asymptotic_mse(sizes, **where)
    curve = mse if gamma > 0.5 else 1 - mse
    slope = np.log(curve[1] / curve[0]) / np.log(4)
    assert asymptotic_exponent(gamma) == pytest.approx(slope)


@pytest.mark.parametrize("gamma", [0.0, 0.5, -1.0])
def test_no_law_at_one_half(gamma):
    with pytest.raises(ValueError, match="no power law"):
        asymptotic_exponent(gamma)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.3, 0.8])
def test_exponent_of_an_independent_second_layer(gamma):
    """From sum lambda^2 (1 - cos^4) over all directions, none left out as too weak."""
    weights = power_law_weights(40, gamma) * np.where(np.arange(40) % 2, 1, -1)
    found = error_exponents(weights, gamma=gamma, first=3, last=20)
    ratios = np.geomspace(weights[2] ** -2, weights[19] ** -2, 24)
    law = LabelLaw.of(weights)
    mse = [np.sum(weights**2 * (1 - predict(law, 1 / ratio).cos2 ** 2)) for ratio in ratios]
    curve = np.array(mse) if gamma > 0.5 else 1 - np.array(mse)
    slope = np.polyfit(np.log(ratios), np.log(curve), 1)[0]
    assert found["independent"] == pytest.approx(slope, abs=2e-3)
    recovered = [np.count_nonzero(weights**2 * ratio * (1 + 1e-9) >= 1) for ratio in ratios]
    tails = np.array([np.sum(weights[m:] ** 2) for m in recovered])
    tails = tails if gamma > 0.5 else 1 - tails
    assert found["tail"] == pytest.approx(np.polyfit(np.log(ratios), np.log(tails), 1)[0], abs=0.02)
    assert set(found) == {"same_sample", "independent", "outliers", "tail"}


@pytest.mark.parametrize(
    ("gamma", "independent", "same_sample"), [(0.8, -0.462, -0.217), (1.0, -0.569, -0.378)]
)
def test_exponents_at_width_300(gamma, independent, same_sample):
    """An earlier computation of the same theory, from samples of the label: within 0.02."""
    weights = draw_weights(300, gamma, generator(0, "error exponents", 300, 0))
    found = error_exponents(weights, gamma=gamma, first=3, last=60)
    assert found["independent"] == pytest.approx(independent, abs=0.02)
    assert found["same_sample"] == pytest.approx(same_sample, abs=0.02)


@pytest.mark.slow
def test_table(table):
    assert list(table.columns) == [
        "gamma", "n_directions", "seed", "first", "last", "second_layer", "exponent",
    ]  # fmt: skip
    assert len(table) == 2 * 2 * 4
    assert table[["n_directions", "first", "last"]].drop_duplicates().to_numpy().tolist() == [
        [16, 2, 8]
    ]
    row = table[(table["gamma"] == 1.0) & (table["seed"] == 1)]
    weights = draw_weights(16, 1.0, generator(5, "error exponents", 16, 1))
    expected = error_exponents(weights, gamma=1.0, first=2, last=8)
    assert dict(zip(row["second_layer"], row["exponent"], strict=True)) == expected
    # Signs differ between seeds, and enter the sharp theory but not the tail sum.
    tails = table[table["second_layer"] == "tail"]
    assert tails.groupby("gamma")["exponent"].nunique().eq(1).all()
    rest = table[table["second_layer"] == "same_sample"]
    assert rest.groupby("gamma")["exponent"].nunique().eq(2).all()
    # The error falls above one half; below it, what is recovered grows.
    assert (tails.loc[tails["gamma"] == 1.0, "exponent"] < 0).all()
    assert (tails.loc[tails["gamma"] == 0.3, "exponent"] > 0).all()


def test_script_writes_the_table(tmp_path, table, run_script):
    output = tmp_path / "exponents.parquet"
    one = SETTINGS.model_copy(update={"gammas": (1.0,), "seeds": 1})
    options = {"exponents": one.model_dump_json(), "seed": 5, "output": output}
    assert run_script("predict_exponents", **options).returncode == 0
    expected = table[(table["gamma"] == 1.0) & (table["seed"] == 0)].reset_index(drop=True)
    pd.testing.assert_frame_equal(read_table(output), expected)
    assert read_provenance(output)["parameters"]["exponents"]["widths"] == [16]
