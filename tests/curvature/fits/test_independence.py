"""Errors of s = alpha gamma, on synthetic layers whose laws and residuals are known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.curvature.fits.independence import (
    fit_independence,
    fit_transfer,
    free_error,
    permuted_error,
)
from spectral_laws.errors import DataError
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema

SETTINGS = {"top_k": 20, "permutations": 500, "seed": 3}
K = np.arange(1.0, 21)


def layer(sigma, h, *, part="whole", name="layer", index=0):
    size = len(sigma)
    return pd.DataFrame(
        {
            "model": "net",
            "seed": 0,
            "epoch": 7,
            "final": True,
            "part": part,
            "layer_index": index,
            "layer": name,
            "kind": "conv",
            "role": "conv",
            "index": np.arange(1, size + 1),
            "singular_value": sigma,
            "directional_curvature": h,
        }
    )


def draw(rng, *, alpha=2.0, gamma=0.8, sigma_noise=0.1, noise=0.3):
    """Decreasing singular values about a power law, and curvatures about another."""
    sigma = np.sort(K**-gamma * np.exp(sigma_noise * rng.normal(size=20)))[::-1]
    return sigma, 3 * sigma**alpha * np.exp(noise * rng.normal(size=20))


def parts(rng, **options):
    return pd.concat([layer(*draw(rng, **options), part=p) for p in ("first", "second", "whole")])


def slope(x, y):
    return np.polyfit(x, y, 1)[0]


def test_exact_law_has_no_error_except_when_shuffled():
    exact = (K**-0.8, 3 * K**-1.6)
    table = pd.concat([layer(*exact, part=part) for part in ("first", "second", "whole")])
    row = fit_independence(table, **SETTINGS).iloc[0]
    for part in ("first", "second", "whole"):
        assert row[f"alpha_{part}"] == pytest.approx(2)
        assert row[f"gamma_{part}"] == pytest.approx(0.8)
        assert row[f"s_{part}"] == pytest.approx(1.6)
    assert (row["alpha_r2"], row["gamma_r2"]) == (pytest.approx(1), pytest.approx(1))
    for name in ("error_same", "error_halves", "error_free"):
        assert row[name] == pytest.approx(0, abs=1e-6)
    # with log sigma a line in log k, even shuffled curvatures obey s = alpha gamma
    assert row["error_permuted"] == pytest.approx(0, abs=1e-6)


def test_errors_are_those_of_separate_fits():
    table = parts(np.random.default_rng(5))
    row = fit_independence(table, **SETTINGS).iloc[0]
    fits = {}
    for part, rows in table.groupby("part"):
        log_sigma, log_h = (
            np.log(rows[name]) for name in ("singular_value", "directional_curvature")
        )
        fits[part] = (
            slope(log_sigma, log_h),
            -slope(np.log(K), log_sigma),
            -slope(np.log(K), log_h),
        )
        assert [row[f"{name}_{part}"] for name in ("alpha", "gamma", "s")] == pytest.approx(
            fits[part]
        )

    def error(alpha_of, rest_of):
        alpha, (_, gamma, s) = fits[alpha_of][0], fits[rest_of]
        return abs(s - alpha * gamma) / abs(s)

    assert row["error_same"] == pytest.approx(error("whole", "whole"))
    both = error("first", "second") + error("second", "first")
    assert row["error_halves"] == pytest.approx(both / 2)
    one, two = fits["first"][2], fits["second"][2]
    repeat = abs(one - two) * (1 / abs(one) + 1 / abs(two)) / 2
    assert row["error_repeat"] == pytest.approx(repeat)
    assert row["n_used"] == 20


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_s_differs_from_the_product_by_the_residuals_along_log_k_alone(seed):
    transfer = fit_transfer(*draw(np.random.default_rng(seed), noise=1.0))
    residuals = transfer.log_h - transfer.alpha * transfer.log_sigma
    along = residuals @ transfer.log_k / (transfer.log_k @ transfer.log_k)
    assert transfer.s == pytest.approx(transfer.alpha * transfer.gamma - along, abs=1e-12)


def test_residuals_of_known_direction():
    """The largest error that residuals of this norm can give, and none at all."""
    rng = np.random.default_rng(1)
    sigma, _ = draw(rng)
    log_sigma, log_k = (np.log(v) - np.log(v).mean() for v in (sigma, K))
    worst = log_k - (log_k @ log_sigma) / (log_sigma @ log_sigma) * log_sigma
    worst /= np.linalg.norm(worst)
    harmless = np.linalg.qr(np.stack([np.ones(20), log_sigma, worst, rng.normal(size=20)], 1))[0]
    for direction, share in ((worst, 1.0), (harmless[:, 3], 0.0)):
        transfer = fit_transfer(sigma, sigma**2 * np.exp(0.7 * direction))
        assert transfer.alpha == pytest.approx(2)
        error = abs(transfer.s - transfer.alpha * transfer.gamma)
        off_line = np.sqrt(1 - transfer.gamma_r2)
        assert error == pytest.approx(share * 0.7 * off_line / np.linalg.norm(log_k), abs=1e-12)


def test_free_error_is_the_mean_over_random_residuals():
    rng = np.random.default_rng(2)
    sigma, h = draw(rng, sigma_noise=0.4, noise=1.0)
    transfer = fit_transfer(sigma, h)
    residuals = transfer.log_h - transfer.alpha * transfer.log_sigma
    basis = np.linalg.qr(np.stack([np.ones(20), transfer.log_sigma], 1))[0]
    random = rng.normal(size=(40_000, 20))
    random -= random @ basis @ basis.T
    random *= np.linalg.norm(residuals) / np.linalg.norm(random, axis=1, keepdims=True)
    errors = np.abs(random @ transfer.log_k) / (transfer.log_k @ transfer.log_k) / abs(transfer.s)
    assert free_error(transfer) == pytest.approx(errors.mean(), rel=0.02)
    assert errors.std() / np.sqrt(errors.size) < 0.005 * errors.mean()


def test_shuffled_curvatures_break_the_identity_as_a_loop_finds():
    rng = np.random.default_rng(3)
    sigma, h = draw(rng, sigma_noise=0.5)
    transfer = fit_transfer(sigma, h)
    found = permuted_error(transfer, permutations=4000, generator=np.random.default_rng(0))
    errors = []
    for _ in range(4000):
        shuffled = fit_transfer(sigma, rng.permutation(h))
        errors.append(abs(shuffled.s - shuffled.alpha * shuffled.gamma) / abs(shuffled.s))
    assert found == pytest.approx(np.median(errors), rel=0.1)
    assert found > 5 * abs(transfer.s - transfer.alpha * transfer.gamma) / abs(transfer.s)


def test_halves_of_one_law_agree_up_to_their_noise_and_halves_of_two_do_not():
    rng = np.random.default_rng(4)
    one_law = [fit_independence(parts(rng), **SETTINGS).iloc[0] for _ in range(30)]
    halves = np.array([row["error_halves"] for row in one_law])
    same = np.array([row["error_same"] for row in one_law])
    assert np.median(same) < np.median(halves) < 0.1
    sigma = K**-0.8
    two_laws = pd.concat(
        [layer(sigma, sigma**a, part=p) for p, a in (("first", 1), ("second", 2), ("whole", 1.5))]
    )
    row = fit_independence(two_laws, **SETTINGS).iloc[0]
    assert row["error_same"] < 1e-9
    assert row["error_halves"] == pytest.approx((0.5 + 1) / 2)


def test_layers_without_halves_are_left_out_and_layers_without_a_fit_say_so():
    rng = np.random.default_rng(6)
    few = parts(rng).assign(layer="few", layer_index=2)
    dropped = (few["part"] == "second") & (few["index"] > 4)
    few.loc[dropped, "directional_curvature"] = -1.0
    flat = pd.concat(
        [
            layer(K**-0.8, np.ones(20), part=p, name="flat", index=3)
            for p in ("first", "second", "whole")
        ]
    )
    still = pd.concat(
        [layer(*draw(rng), part=p, name="still", index=4) for p in ("first", "whole")]
    )
    other = layer(*draw(rng)).assign(model="other")
    table = fit_independence(pd.concat([parts(rng), still, other, few, flat]), **SETTINGS)
    assert set(table["model"]) == {"net"}
    assert list(table["layer"]) == ["layer", "few", "flat", "still"]
    assert list(table["status"]) == ["fit", "no fit", "no fit", "no fit"]
    assert table["reason"][1].startswith("second part of the batch: 4 of 20")
    assert table["reason"][2].endswith("(s = 0)")
    assert table["reason"][3] == "second part of the batch: no direction"
    assert list(table["n_used"]) == [20, 20, 20, 20]
    assert table.loc[1:, load_schema("curvature/independence").nullable].isna().all(axis=None)


def test_a_network_needs_all_parts_and_shuffles_are_seeded():
    table = parts(np.random.default_rng(7))
    for absent in ("first", "second", "whole"):
        with pytest.raises(DataError, match=f"net, seed 0, lacks the {absent} part"):
            fit_independence(table[table["part"] != absent], **SETTINGS)
    one, two = (fit_independence(table, **SETTINGS) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    other = fit_independence(table, **{**SETTINGS, "seed": 4})
    assert other["error_permuted"][0] != one["error_permuted"][0]
    assert other["error_halves"][0] == one["error_halves"][0]


def test_script_writes_what_the_library_computes(tmp_path, run_script):
    spectra = parts(np.random.default_rng(8))
    source, output = tmp_path / "spectra.parquet", tmp_path / "independence.parquet"
    write_table(spectra, source, Provenance(parameters={}))
    options = {"spectra": source, "output": output, "top_k": 20, "permutations": 500, "seed": 3}
    assert run_script("fit_independence", **options).returncode == 0
    expected = fit_independence(spectra, **SETTINGS)
    pd.testing.assert_frame_equal(read_table(output), expected, check_dtype=False)
