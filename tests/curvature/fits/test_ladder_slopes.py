"""Ratios, decomposition and factor models on tables whose laws are known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_laws.artifacts import read_table
from spectral_laws.curvature.fits.decomposition import (
    FACTORS,
    SLOPES,
    fit_decomposition,
)
from spectral_laws.curvature.fits.factor_models import compare_factor_models
from spectral_laws.curvature.fits.ladder_slopes import RATIOS, fit_ladder
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.tables.schemas import load_schema

SETTINGS = {"top_k": 20, "confidence": 0.95, "resamples": 200, "seed": 3}
EMPIRICAL = ("gauss_newton", "fisher", "positions", "kronecker")
TRUE = ("positions_true", "kronecker_true")
K = np.arange(1.0, 21)
SIGMA = 0.5 * K**-0.8


def layer(curvatures=None, *, sigma=SIGMA, name="layer", index=0, **columns):
    """A layer's rows; ``curvatures`` by column, absent ones missing."""
    size = len(sigma)
    rows = {
        "model": "net",
        "architecture": "resnet18",
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
        "directional_curvature": 3 * np.asarray(sigma) ** 2,
    }
    rows |= dict.fromkeys((*EMPIRICAL, *TRUE, *FACTORS), np.nan)
    return pd.DataFrame(rows | (curvatures or {}) | columns)


def ladder_of_powers():
    """exact = 3 sigma^2, and every step below it is 2 sigma^0.1 times smaller than the last."""
    exact = 3 * SIGMA**2
    step = 2 * SIGMA**0.1
    values = {name: exact / step**i for i, name in enumerate(EMPIRICAL, start=1)}
    return values | {"positions_true": exact / step**3, "kronecker_true": exact / step**5}


def factors_of(rng, *, exact_noise=0.0, noise=0.0):
    """Factors with slopes 0.7, 0.6 (eigenvalues), 0.2, 0.1 (alignments), and chi of slope 0.4."""
    slopes = {"lambda_delta": 0.7, "lambda_a": 0.6, "rho_delta": 0.2, "rho_a": 0.1}
    size = SIGMA.size
    values = {
        name: (i + 1) * SIGMA**slope * np.exp(noise * rng.normal(size=size))
        for i, (name, slope) in enumerate(slopes.items())
    }
    kronecker = np.prod(list(values.values()), axis=0)
    exact = 5 * kronecker * SIGMA**0.4 * np.exp(exact_noise * rng.normal(size=size))
    return values | {"kronecker": kronecker, "directional_curvature": exact}


def test_power_ratios_have_their_medians_and_slopes():
    table = fit_ladder(layer(ladder_of_powers()), **SETTINGS).set_index("ratio")
    assert list(table.index) == list(RATIOS)
    assert (table["status"] == "fit").all()
    steps = dict(zip(RATIOS, (1, 1, 1, 1, 4, 2, 2, 5), strict=True))
    for ratio, count in steps.items():
        row = table.loc[ratio]
        assert row["slope"] == pytest.approx(0.1 * count, abs=1e-10)
        assert row["slope_low"] == pytest.approx(0.1 * count, abs=1e-10)
        assert row["slope_high"] == pytest.approx(0.1 * count, abs=1e-10)
        assert row["median"] == pytest.approx(np.median((2 * SIGMA**0.1) ** count))
        assert (row["n_used"], row["n_dropped"]) == (20, 0)


def test_noisy_ratio_agrees_with_polyfit_on_the_entries_positive_in_all_three():
    rng = np.random.default_rng(2)
    fisher = 3 * SIGMA**2 * np.exp(rng.normal(size=20))
    positions = SIGMA**1.5 * np.exp(rng.normal(size=20))
    fisher[4], positions[[7, 11]] = -1.0, 0.0
    values = {**ladder_of_powers(), "fisher": fisher, "positions": positions}
    row = fit_ladder(layer(values), **SETTINGS).set_index("ratio").loc["fisher/positions"]
    used = (fisher > 0) & (positions > 0)
    ratio = fisher[used] / positions[used]
    assert row["slope"] == pytest.approx(np.polyfit(np.log(SIGMA[used]), np.log(ratio), 1)[0])
    assert row["median"] == pytest.approx(np.median(ratio))
    assert (row["n_used"], row["n_dropped"]) == (17, 3)
    assert row["slope_low"] < row["slope"] < row["slope_high"]


def test_unmeasured_curvatures_are_no_fit_with_a_reason():
    language = {name: values for name, values in ladder_of_powers().items() if name in EMPIRICAL}
    table = pd.concat([layer(language), layer(name="tied", index=1)])
    fitted = fit_ladder(table, **SETTINGS)
    first = fitted[fitted["layer"] == "layer"].set_index("ratio")
    assert (first["status"] == "fit").sum() == 5
    absent = first[first["status"] == "no fit"]
    assert [*absent.index] == [*RATIOS][5:]
    assert absent["reason"].str.contains("_true was not measured").all()
    assert absent[load_schema("curvature/ladder").nullable].isna().all(axis=None)
    assert (fitted[fitted["layer"] == "tied"]["status"] == "no fit").all()


def test_only_final_networks_on_the_whole_batch_enter():
    good = layer(ladder_of_powers())
    others = [
        layer(name="early", final=False, epoch=0),
        layer({"fisher": SIGMA}, part="first"),
        layer({"fisher": SIGMA}, part="second"),
    ]
    expected = fit_ladder(good, **SETTINGS)
    pd.testing.assert_frame_equal(fit_ladder(pd.concat([*others, good]), **SETTINGS), expected)


def test_bad_ladders():
    good = layer(ladder_of_powers())
    with pytest.raises(DataError, match="no column kronecker"):
        fit_ladder(good.drop(columns="kronecker"), **SETTINGS)
    with pytest.raises(DataError, match="no column part"):
        fit_ladder(good.drop(columns="part"), **SETTINGS)
    infinite = good.copy()
    infinite.loc[3, "fisher"] = np.inf
    with pytest.raises(NumericalError, match="fisher of net"):
        fit_ladder(infinite, **SETTINGS)


def test_directions_without_an_alignment_are_dropped_and_counted():
    whole = layer(factors_of(np.random.default_rng(0)))
    beyond = whole["index"] > len(whole) - 3
    partly = whole.copy()
    partly.loc[beyond, ["rho_a", "lambda_a"]] = np.nan
    row = fit_decomposition(partly, **SETTINGS).iloc[0]
    expected = fit_decomposition(whole[~beyond], **SETTINGS).iloc[0]
    assert (row["n_used"], row["n_dropped"]) == (len(whole) - 3, 3)
    assert (row["n_nonpositive"], row["n_beyond_rank"]) == (0, 3)
    assert row["alpha"] == expected["alpha"]
    assert row["phi_a"] == expected["phi_a"]
    # The ladder's own ratios do not need the alignments.
    ratios = fit_ladder(partly, **SETTINGS).set_index("ratio")
    assert ratios.loc["exact/kronecker", "n_dropped"] == 0


def test_every_dropped_entry_has_one_reason():
    values = factors_of(np.random.default_rng(0))
    values["directional_curvature"][[1, 4, 19]] = [-1.0, 0.0, -1.0]
    values["kronecker"][6] = -1e-9
    for name in ("rho_delta", "lambda_delta"):
        values[name][17:] = np.nan  # the last of these has no positive curvature either
    row = fit_decomposition(layer(values), **SETTINGS).iloc[0]
    counts = row[["n_used", "n_dropped", "n_nonpositive", "n_beyond_rank"]]
    assert list(counts) == [14, 6, 4, 2]
    unknown = dict.fromkeys(FACTORS, np.full(20, np.nan))
    row = fit_decomposition(layer(values | unknown), **SETTINGS).iloc[0]
    assert row["reason"] == "rho_delta was not measured for this layer"
    assert list(row[counts.index]) == [0, 20, 3, 0]


def test_r2_of_alpha_is_that_of_the_entries_that_enter():
    values = factors_of(np.random.default_rng(3), exact_noise=1.0)
    values["directional_curvature"][[2, 8]] *= -1
    values["rho_a"][18:] = np.nan
    row = fit_decomposition(layer(values), **SETTINGS).iloc[0]
    used = (values["directional_curvature"] > 0) & ~np.isnan(values["rho_a"])
    logs = np.log(values["directional_curvature"][used]), np.log(SIGMA[used])
    assert row["alpha_r2"] == pytest.approx(np.corrcoef(*logs)[0, 1] ** 2)
    assert row["alpha_r2"] < 0.95


@pytest.mark.parametrize("rung", [np.nan, 0.0])
def test_layers_without_gradient_have_neither_ladder_nor_decomposition(rung):
    rungs = {name: [rung] for name in (*EMPIRICAL, *TRUE, *FACTORS)}
    dead = layer({**rungs, "directional_curvature": [0.0]}, sigma=[0.0], name="dead", index=1)
    values = {**ladder_of_powers(), **factors_of(np.random.default_rng(0))}
    table = pd.concat([layer(values), dead])
    row = fit_decomposition(table, **SETTINGS).iloc[1]
    assert (row["layer"], row["status"]) == ("dead", "no fit")
    assert row["reason"] == "the layer's gradient is zero: it has no singular direction"
    assert row[load_schema("curvature/decomposition").nullable].isna().all()
    assert list(row[["n_used", "n_dropped", "n_nonpositive", "n_beyond_rank"]]) == [0, 0, 0, 0]
    ladder = fit_ladder(table, **SETTINGS)
    ratios = ladder[ladder["layer"] == "dead"]
    assert list(ratios["ratio"]) == list(RATIOS)
    assert (ratios["status"] == "no fit").all()
    assert (ratios["reason"] != "").all()
    assert (ratios[["n_used", "n_dropped"]] == 0).all(axis=None)
    assert ratios[load_schema("curvature/ladder").nullable].isna().all(axis=None)


def test_decomposition_finds_every_slope_of_exact_laws():
    row = fit_decomposition(layer(factors_of(np.random.default_rng(0))), **SETTINGS).iloc[0]
    known = dict(zip(SLOPES, (2.0, 0.7, 0.6, 1.3, 0.2, 0.1, 0.3, 0.4), strict=True))
    for name, value in known.items():
        for part in ("", "_low", "_high"):
            assert row[name + part] == pytest.approx(value, abs=1e-10)
    assert abs(row["identity_gap"]) < 1e-10
    assert row["kronecker_gap"] < 1e-12
    assert row["r_kronecker"] == pytest.approx(1)
    assert (row["n_used"], row["n_dropped"], row["status"]) == (20, 0, "fit")


@given(seed=st.integers(0, 10_000), dropped=st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_identities_hold_for_any_noise(seed, dropped):
    rng = np.random.default_rng(seed)
    values = factors_of(rng, exact_noise=2.0, noise=1.0)
    values["directional_curvature"][rng.permutation(20)[:dropped]] *= -1
    row = fit_decomposition(layer(values), **{**SETTINGS, "resamples": 100}).iloc[0]
    assert abs(row["identity_gap"]) < 1e-10
    assert row["alpha"] == pytest.approx(row["beta"] + row["phi"] + row["chi"], abs=1e-10)
    assert row["beta"] == pytest.approx(row["beta_delta"] + row["beta_a"], abs=1e-10)
    assert row["phi"] == pytest.approx(row["phi_delta"] + row["phi_a"], abs=1e-10)
    assert row["kronecker_gap"] < 1e-12
    assert row["n_dropped"] == dropped
    used = values["directional_curvature"] > 0
    log_kronecker, log_sigma = np.log(values["kronecker"][used]), np.log(SIGMA[used])
    assert row["r_kronecker"] == pytest.approx(np.corrcoef(log_kronecker, log_sigma)[0, 1])


def test_a_wrong_kronecker_curvature_shows_in_both_gaps():
    values = factors_of(np.random.default_rng(0), exact_noise=0.5)
    values["kronecker"] = values["kronecker"] * SIGMA**0.5
    row = fit_decomposition(layer(values), **SETTINGS).iloc[0]
    assert row["identity_gap"] == pytest.approx(0.5, abs=1e-10)
    assert row["kronecker_gap"] > 0.5


def test_layers_without_factors_or_entries_have_no_decomposition():
    values = factors_of(np.random.default_rng(0))
    few = {**values, "rho_a": np.where(K <= 4, values["rho_a"], 0.0)}
    table = fit_decomposition(
        pd.concat([layer(values), layer(name="tied", index=1), layer(few, name="few", index=2)]),
        **SETTINGS,
    )
    assert list(table["status"]) == ["fit", "no fit", "no fit"]
    assert "not measured" in table["reason"][1]
    assert table["reason"][2].startswith("4 of 20 directions have h, sigma, Kronecker")
    assert list(table["n_used"]) == [20, 0, 4]
    assert table.loc[1:, load_schema("curvature/decomposition").nullable].isna().all(axis=None)


def test_constant_kronecker_curvature_has_no_correlation():
    values = dict.fromkeys(FACTORS, np.ones(20)) | {"kronecker": np.ones(20)}
    row = fit_decomposition(layer(values), **SETTINGS).iloc[0]
    assert row["status"] == "fit"
    assert np.isnan(row["r_kronecker"])
    assert row["chi"] == pytest.approx(2, abs=1e-10)


def factor_rows(eigenvalues, factor, **columns):
    rows = layer(sigma=eigenvalues)[["model", "seed", "layer_index", "layer", "kind", "role"]]
    size = len(eigenvalues)
    return rows.assign(
        factor=factor,
        size=64,
        participation_rank=3.5,
        entropy_rank=5.5,
        index=np.arange(1, size + 1),
        eigenvalue=eigenvalues,
        **columns,
    )


def test_factor_models_match_where_both_decays_are_of_one_kind():
    power, exponential = K**-1.5, np.exp(-0.3 * K)
    factors = pd.concat([factor_rows(exponential, "delta"), factor_rows(power, "a")])
    table = compare_factor_models(factors, layer(), top_k=20).set_index("factor")
    assert list(table.index) == ["a", "delta"]
    assert list(table["rank_model"]) == ["power_law", "exponential"]
    assert (table["gradient_rank_model"] == "power_law").all()
    assert list(table["same"]) == [True, False]
    assert list(table["size"]) == [64, 64]
    assert list(table["participation_rank"]) == [3.5, 3.5]


def test_factor_models_use_the_leading_values_alone():
    kinked = np.concatenate([K[:10] ** -1.0, np.exp(-0.9 * K[10:])])
    factors = factor_rows(kinked, "delta")
    leading = compare_factor_models(factors, layer(), top_k=10).iloc[0]
    assert leading["rank_model"] == "power_law"
    assert compare_factor_models(factors, layer(), top_k=20).iloc[0]["rank_model"] != "power_law"


def test_factors_of_small_rank_have_no_model_and_strangers_are_refused():
    few = factor_rows(np.where(K <= 3, 1 / K, 0.0), "delta")
    row = compare_factor_models(few, layer(), top_k=20).iloc[0]
    assert row["status"] == "no fit"
    assert row["reason"].startswith("factor: 3 of 20")
    assert row[["rank_model", "gradient_rank_model", "same"]].isna().all()
    with pytest.raises(DataError, match="not in the spectra"):
        compare_factor_models(few, layer(index=3), top_k=20)
    with pytest.raises(DataError, match="index of factor delta of net, seed 0, layer layer"):
        compare_factor_models(few[few["index"] != 2], layer(), top_k=20)
    short = layer(sigma=SIGMA[:4])
    assert (
        "gradient: 4 of 4"
        in compare_factor_models(factor_rows(1 / K, "a"), short, top_k=20).iloc[0]["reason"]
    )


def test_script_writes_the_three_tables(tmp_path, run_script):
    spectra = layer({**ladder_of_powers(), **factors_of(np.random.default_rng(1), noise=0.3)})
    spectra = pd.concat([spectra, layer(name="tied", index=1)])
    factors = pd.concat([factor_rows(1 / K, "delta"), factor_rows(K[:3], "a")])
    paths = {name: tmp_path / f"{name}.parquet" for name in ("spectra", "factors")}
    spectra.to_parquet(paths["spectra"])
    factors.to_parquet(paths["factors"])
    outputs = {name: tmp_path / f"{name}.parquet" for name in ("ladder", "decomposition")}
    outputs["factor-models"] = tmp_path / "factor_models.parquet"
    intervals = {"confidence": 0.95, "resamples": 200}
    done = run_script("fit_ladder", seed=3, top_k=20, intervals=intervals, **paths, **outputs)
    assert done.returncode == 0, done.stderr
    expected = {
        "ladder": fit_ladder(spectra, **SETTINGS),
        "decomposition": fit_decomposition(spectra, **SETTINGS),
        "factor-models": compare_factor_models(factors, spectra, top_k=20),
    }
    for name, table in expected.items():
        assert set(table["status"]) == {"fit", "no fit"}
        pd.testing.assert_frame_equal(read_table(outputs[name]), table, check_dtype=False)
