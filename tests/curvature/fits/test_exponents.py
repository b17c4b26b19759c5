import json

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table, write_table
from spectral_laws.curvature.fits.exponents import fit_exponents
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema

SETTINGS = {"top_k": 20, "confidence": 0.95, "resamples": 200, "seed": 3}
RANK_MODEL = ["rank_model", "bic_power_law", "bic_exponential", "bic_lognormal"]


def layer(sigma, h, *, name="layer", index=0, model="net", seed=0, **columns):
    size = len(sigma)
    return pd.DataFrame(
        {
            "model": model,
            "architecture": "resnet18",
            "seed": seed,
            "layer_index": index,
            "layer": name,
            "kind": "conv",
            "role": "conv",
            "epoch": 7,
            "final": True,
            "part": "whole",
            "n_rows": 30,
            "n_columns": 40,
            "index": np.arange(1, size + 1),
            "singular_value": sigma,
            "directional_curvature": h,
            "method": "gauss_newton",
            "n_samples": 64,
            "train_loss": 0.01,
            "n_below_rank": 2,
            **columns,
        }
    )


def power_law(alpha=2.0, gamma=0.8, size=20, noise=0.0, seed=0):
    k = np.arange(1.0, size + 1)
    sigma = 0.5 * k**-gamma
    return sigma, 3 * sigma**alpha * np.exp(noise * np.random.default_rng(seed).normal(size=size))


def only_row(table):
    assert len(table) == 1
    return table.iloc[0]


def test_exact_power_law_gives_its_exponents_and_a_closed_triangle():
    row = only_row(fit_exponents(layer(*power_law(alpha=1.7, gamma=0.9)), **SETTINGS))
    for name, value in (("alpha", 1.7), ("gamma", 0.9), ("s", 1.53)):
        for part in ("", "_low", "_high"):
            assert row[name + part] == pytest.approx(value, abs=1e-9)
        assert row[name + "_stderr"] == pytest.approx(0, abs=1e-7)
        assert row[name + "_r2"] == pytest.approx(1)
    assert row["transfer_error"] < 1e-9
    assert row["s_sorted"] == pytest.approx(1.53)
    assert row["rank_model"] == "power_law"
    assert row["participation_bound"] == pytest.approx(participation_ratio_bound(1.53))
    assert row["participation_ratio"] == pytest.approx(participation_ratio(power_law(1.7, 0.9)[1]))
    assert row["bic_power_law"] < row["bic_lognormal"] < row["bic_exponential"]


def test_noisy_layer_agrees_with_polyfit_and_intervals_hold_the_value():
    sigma, h = power_law(noise=0.4)
    row = only_row(fit_exponents(layer(sigma, h), **SETTINGS))
    k = np.arange(1.0, 21)
    alpha = np.polyfit(np.log(sigma), np.log(h), 1)[0]
    gamma, s = (-np.polyfit(np.log(k), np.log(y), 1)[0] for y in (sigma, h))
    assert [row["alpha"], row["gamma"], row["s"]] == pytest.approx([alpha, gamma, s])
    assert row["transfer_error"] == pytest.approx(abs(s - alpha * gamma) / s, abs=1e-12)
    assert row["alpha_low"] < row["alpha"] < row["alpha_high"]
    assert row["s_low"] < row["s"] < row["s_high"]
    by_sorting = -np.polyfit(np.log(k), np.log(np.sort(h)[::-1]), 1)[0]
    assert row["s_sorted"] == pytest.approx(by_sorting)
    assert row["transfer_error_sorted"] == pytest.approx(
        abs(by_sorting - alpha * gamma) / by_sorting
    )


def test_entries_without_positive_curvature_leave_all_three_fits_and_keep_ranks():
    sigma, h = power_law()
    h[[2, 5, 19]] = [0.0, -1e-3, -2.0]
    row = only_row(fit_exponents(layer(sigma, h), **SETTINGS))
    assert (row["n_directions"], row["n_used"], row["n_nonpositive"]) == (20, 17, 3)
    assert row["n_below_rank"] == 0  # twenty directions are there, two more were asked for
    # the ranks of the others are the original ones, so that the exact law is still found
    assert row["gamma"] == pytest.approx(0.8, abs=1e-9)
    assert row["s"] == pytest.approx(1.6, abs=1e-9)
    assert row["s_sorted"] != pytest.approx(1.6, abs=1e-3)
    assert row["participation_ratio"] == pytest.approx(participation_ratio(h[h > 0]))


def test_too_few_entries_is_no_fit_with_missing_numbers():
    sigma, h = power_law()
    h[4:] = -1.0
    table = fit_exponents(
        pd.concat([layer(sigma, h), layer(*power_law(), name="other", index=1)]), **SETTINGS
    )
    bad, good = table.iloc[0], table.iloc[1]
    assert (bad["status"], good["status"]) == ("no fit", "fit")
    assert bad["reason"] == "4 of 20 directions have h > 0 and sigma > 0; a fit needs 5"
    assert good["reason"] == ""
    nullable = load_schema("curvature/exponents").nullable
    assert bad[[name for name in nullable if name not in RANK_MODEL]].isna().all()
    assert good[nullable].notna().all()
    assert (bad["n_used"], bad["n_nonpositive"]) == (4, 16)
    assert (bad[RANK_MODEL] == good[RANK_MODEL]).all()  # of the same singular values


def test_rank_model_needs_singular_values_alone():
    sigma, h = power_law(noise=0.3)
    few = h.copy()
    few[3:] = 0.0
    flat = np.ones_like(h)
    table = fit_exponents(
        pd.concat(
            [
                layer(sigma, values, name=str(index), index=index)
                for index, values in enumerate((h, few, flat))
            ]
            + [layer(sigma[:4], h[:4], name="short", index=3)]
        ),
        **SETTINGS,
    )
    assert list(table["status"]) == ["fit", "no fit", "no fit", "no fit"]
    assert table["reason"][2].startswith("the curvatures do not change with rank")
    for row in (1, 2):
        assert (table.loc[row, RANK_MODEL] == table.loc[0, RANK_MODEL]).all()
    assert table.loc[3, RANK_MODEL].isna().all()
    assert table["reason"][3].startswith("4 of 4 directions")


def test_layer_without_gradient_is_no_fit_and_has_no_direction():
    nothing = layer([0.0], [0.0], name="dead", index=1, n_below_rank=20)
    table = fit_exponents(pd.concat([layer(*power_law()), nothing]), **SETTINGS)
    assert list(table["status"]) == ["fit", "no fit"]
    dead = table.iloc[1]
    assert dead["reason"] == "the layer's gradient is zero: it has no singular direction"
    assert dead[load_schema("curvature/exponents").nullable].isna().all()
    assert (dead["n_directions"], dead["n_used"], dead["n_nonpositive"]) == (0, 0, 0)
    assert dead["n_below_rank"] == 20
    assert (dead["epoch"], dead["role"]) == (7, "conv")


def test_divergent_bound_is_missing_not_infinite():
    row = only_row(fit_exponents(layer(*power_law(alpha=1.0, gamma=0.5)), **SETTINGS))
    assert np.isnan(row["participation_bound"])
    assert row["status"] == "fit"


def test_one_row_per_layer_in_depth_order_whatever_the_row_order():
    parts = [
        layer(
            *power_law(noise=0.2, seed=10 * seed + index),
            name=f"z{9 - index}",
            index=index,
            seed=seed,
        )
        for seed in (1, 0)
        for index in (2, 0, 1)
    ]
    spectra = pd.concat(parts, ignore_index=True)
    table = fit_exponents(spectra, **SETTINGS)
    assert list(zip(table["seed"], table["layer_index"], strict=True)) == [
        (seed, index) for seed in (0, 1) for index in (0, 1, 2)
    ]
    shuffled = spectra.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(table, fit_exponents(shuffled, **SETTINGS))
    alone = fit_exponents(parts[0], **SETTINGS)
    same = table[(table["seed"] == 1) & (table["layer_index"] == 2)].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same)  # intervals do not depend on the other layers
    other_seed = fit_exponents(spectra, **{**SETTINGS, "seed": 4})
    assert (other_seed["alpha"] == table["alpha"]).all()
    assert (other_seed["alpha_low"] != table["alpha_low"]).all()


def test_only_the_leading_directions_of_the_whole_batch_enter():
    sigma, h = power_law(size=40, noise=0.3)
    expected = only_row(fit_exponents(layer(sigma[:20], h[:20]), **SETTINGS))
    more = layer(sigma, h)
    halves = [
        layer(*power_law(alpha=5.0, seed=part), part=name)
        for part, name in enumerate(("first", "second"))
    ]
    row = only_row(fit_exponents(pd.concat([more, *halves]), **SETTINGS))
    pd.testing.assert_series_equal(row, expected)
    ten = only_row(fit_exponents(more, **{**SETTINGS, "top_k": 10}))
    assert ten["n_directions"] == 10
    assert ten["alpha"] == pytest.approx(np.polyfit(np.log(sigma[:10]), np.log(h[:10]), 1)[0])


def test_directions_below_rank_are_those_of_the_leading_ones():
    nine = layer(*power_law(size=9), n_below_rank=11)  # of twenty that were asked for
    assert only_row(fit_exponents(nine, **SETTINGS))["n_below_rank"] == 11
    assert only_row(fit_exponents(nine, **{**SETTINGS, "top_k": 12}))["n_below_rank"] == 3
    assert only_row(fit_exponents(nine, **{**SETTINGS, "top_k": 5}))["n_below_rank"] == 0


def test_every_epoch_is_a_row_of_its_own():
    spectra = pd.concat(
        [
            layer(*power_law(alpha=alpha, noise=0.1), epoch=epoch, final=final)
            for alpha, epoch, final in ((2.0, 7, True), (1.5, 0, False), (1.8, 3, False))
        ]
    )
    table = fit_exponents(spectra, **SETTINGS)
    assert list(table["epoch"]) == [0, 3, 7]
    assert list(table["final"]) == [False, False, True]
    assert list(table["alpha"]) == pytest.approx([1.5, 1.8, 2.0], abs=0.2)
    assert table["alpha"].is_monotonic_increasing


def test_round_trip_through_parquet(tmp_path):
    sigma, h = power_law(noise=0.1)
    table = fit_exponents(
        pd.concat([layer(sigma, h), layer(sigma, -h, name="bad", index=1)]), **SETTINGS
    )
    path = tmp_path / "exponents.parquet"
    write_table(table, path, Provenance(parameters={}), "curvature/exponents")
    pd.testing.assert_frame_equal(read_table(path), table, check_dtype=False)


def test_bad_tables():
    good = layer(*power_law())
    with pytest.raises(DataError, match="singular_value"):
        fit_exponents(good.drop(columns="singular_value"), **SETTINGS)
    with pytest.raises(DataError, match="net, seed 0, layer layer is not 1, 2"):
        fit_exponents(pd.concat([good, good]), **SETTINGS)
    with pytest.raises(DataError, match="is not 1, 2"):
        fit_exponents(good[good["index"] != 3], **SETTINGS)
    good.loc[4, "directional_curvature"] = np.nan
    with pytest.raises(NumericalError, match="net, seed 0, layer layer"):
        fit_exponents(good, **SETTINGS)


def test_author_arrays_give_the_stored_exponents(reference):
    text = (reference / "results_alpha_triangle.json").read_text(encoding="utf-8")
    stored = {
        (experiment["experiment"], entry["name"]): entry
        for experiment in json.loads(text)
        for entry in experiment["results"]
    }
    spectra = pd.concat(
        [
            layer(entry["sigma"], entry["h_exact"], name=name, index=index, model=experiment)
            for index, ((experiment, name), entry) in enumerate(stored.items())
        ]
    )
    table = fit_exponents(spectra, **SETTINGS)
    assert len(table) == 24
    for row in table.to_dict("records"):
        entry = stored[row["model"], row["layer"]]
        assert row["alpha"] == pytest.approx(entry["alpha"], abs=1e-9)
        assert row["s_sorted"] == pytest.approx(entry["s_hessian"], abs=1e-9)
        if row["n_nonpositive"] == 0:  # elsewhere the stored gamma has entries that alpha lacks
            assert row["gamma"] == pytest.approx(entry["gamma"], abs=1e-9)
            assert row["transfer_error_sorted"] == pytest.approx(
                entry["triangle_relative_error"], abs=1e-9
            )


def test_script_writes_what_the_library_computes(tmp_path, run_script):
    spectra = pd.concat([layer(*power_law(noise=0.3)), layer([1.0], [1.0], name="tiny", index=1)])
    source, output = tmp_path / "spectra.parquet", tmp_path / "exponents.parquet"
    write_table(spectra, source, Provenance(parameters={}))
    intervals = {"confidence": 0.95, "resamples": 200}
    options = {"spectra": source, "output": output, "top_k": 20, "seed": 3, "intervals": intervals}
    assert run_script("fit_exponents", **options).returncode == 0
    expected = fit_exponents(spectra, **SETTINGS)
    pd.testing.assert_frame_equal(read_table(output), expected, check_dtype=False)
    assert list(expected["status"]) == ["fit", "no fit"]
    assert read_provenance(output)["seed"] == 3
