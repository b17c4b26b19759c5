import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.curvature.fits.windows import fit_windows, window_ranges
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema

SETTINGS = {"top_k": 20, "confidence": 0.95, "resamples": 200, "seed": 3}


def layer(sigma, h, *, name="layer", index=0, **columns):
    size = len(sigma)
    rows = {
        "model": "net",
        "seed": 0,
        "epoch": 7,
        "final": True,
        "part": "whole",
        "layer_index": index,
        "layer": name,
        "kind": "conv",
        "role": "conv",
        "index": np.arange(1, size + 1),
        "singular_value": sigma,
        "directional_curvature": h,
    }
    return pd.DataFrame(rows | columns)


def test_ranges():
    assert window_ranges(64, top_k=20) == {
        "top5": (1, 5),
        "top10": (1, 10),
        "top_k": (1, 20),
        "full": (1, 64),
        "q1": (1, 16),
        "q2": (17, 32),
        "q3": (33, 48),
        "q4": (49, 64),
    }
    assert window_ranges(9, top_k=20) == {
        "top5": (1, 5),
        "top_k": (1, 9),
        "q1": (1, 3),
        "q2": (4, 5),
        "q3": (6, 7),
        "q4": (8, 9),
    }
    assert set(window_ranges(2, top_k=20)) == {"top_k", "q1", "q2"}
    for n in range(1, 50):
        ranges = window_ranges(n, top_k=20)
        quarters = [k for name, (a, b) in ranges.items() if name[0] == "q" for k in range(a, b + 1)]
        assert quarters == list(range(1, n + 1))


def test_a_law_that_changes_with_rank_shows_in_the_windows():
    k = np.arange(1.0, 41)
    sigma = k**-1.0
    # slope 3 over the first ten directions and 1 beyond, continuous at the tenth
    h = np.where(k <= 10, sigma**3, sigma * sigma[9] ** 2)
    table = fit_windows(layer(sigma, h), **SETTINGS).set_index("window")
    for window, alpha in (("top5", 3), ("top10", 3), ("q1", 3), ("q2", 1), ("q3", 1), ("q4", 1)):
        row = table.loc[window]
        assert row["alpha"] == pytest.approx(alpha, abs=1e-9)
        assert row["alpha_low"] == pytest.approx(alpha, abs=1e-9)
        assert row["alpha_high"] == pytest.approx(alpha, abs=1e-9)
        assert row["alpha_r2"] == pytest.approx(1)
    for window, last in (("top_k", 20), ("full", 40)):
        row = table.loc[window]
        assert (row["first"], row["last"], row["n_used"]) == (1, last, last)
        assert (row["n_dropped"], row["n_nonpositive"]) == (0, 0)
        expected = np.polyfit(np.log(sigma[:last]), np.log(h[:last]), 1)[0]
        assert row["alpha"] == pytest.approx(expected)
        assert 1 < row["alpha_low"] < row["alpha"] < row["alpha_high"] < 3


def test_windows_with_too_few_entries_have_no_fit_and_only_final_networks_enter():
    k = np.arange(1.0, 21)
    h = np.where(k <= 5, -1.0, k**-2)
    table = fit_windows(layer(1 / k, h), **SETTINGS).set_index("window")
    assert list(table[table["status"] == "no fit"].index) == ["top5", "q1"]
    assert table.loc["top5", "reason"].startswith("0 of 5")
    assert (
        table.loc[["top5", "q1"], load_schema("curvature/windows").nullable].isna().all(axis=None)
    )
    counts = ["n_used", "n_dropped", "n_nonpositive"]
    assert list(table.loc["top5", counts]) == [0, 5, 5]
    assert list(table.loc["top10", counts]) == [5, 5, 5]
    assert list(table.loc["top_k", counts]) == [15, 5, 5]
    assert list(table.loc["q4", counts]) == [5, 0, 0]
    early = layer(1 / k, 1 / k, final=False, epoch=0)
    half = layer(1 / k, 1 / k, part="first")
    both = fit_windows(pd.concat([early, half, layer(1 / k, h)]), **SETTINGS)
    pd.testing.assert_frame_equal(both.set_index("window"), table)


def test_layer_without_gradient_is_one_window_without_a_fit():
    k = np.arange(1.0, 21)
    nothing = layer([0.0], [0.0], name="dead", index=1)
    table = fit_windows(pd.concat([layer(1 / k, k**-2), nothing]), **SETTINGS)
    row = table[table["layer"] == "dead"].iloc[0]
    assert (table["layer"] == "dead").sum() == 1
    assert (row["window"], row["first"], row["last"], row["status"]) == ("top_k", 1, 0, "no fit")
    assert row["reason"] == "the layer's gradient is zero: it has no singular direction"
    assert list(row[["n_used", "n_dropped", "n_nonpositive"]]) == [0, 0, 0]
    assert row[load_schema("curvature/windows").nullable].isna().all()
    assert (table[table["layer"] != "dead"]["status"] == "fit").all()


def test_script_writes_what_the_library_computes(tmp_path, run_script):
    k = np.arange(1.0, 31)
    spectra = layer(1 / k, k**-2 * np.exp(np.random.default_rng(0).normal(size=30)))
    source, output = tmp_path / "spectra.parquet", tmp_path / "windows.parquet"
    write_table(spectra, source, Provenance(parameters={}))
    intervals = {"confidence": 0.95, "resamples": 200}
    options = {"spectra": source, "output": output, "top_k": 20, "seed": 3, "intervals": intervals}
    assert run_script("fit_windows", **options).returncode == 0
    expected = fit_windows(spectra, **SETTINGS)
    pd.testing.assert_frame_equal(read_table(output), expected, check_dtype=False)
    assert "full" in set(expected["window"])
