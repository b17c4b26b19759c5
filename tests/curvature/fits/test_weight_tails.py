"""Tails and decays of weights whose spectra are known."""

import warnings

import numpy as np
import pandas as pd
import powerlaw
import pytest

from spectral_laws.artifacts import read_table, write_arrays, write_table
from spectral_laws.curvature.fits.weight_tails import (
    fit_tail,
    fit_weight_tails,
    weight_decay_exponent,
)
from spectral_laws.errors import DataError, NoFitError, NumericalError
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema


def pareto(exponent, size, seed=0, xmin=2.0):
    """Values of density ~ x^-exponent above xmin, at random."""
    return xmin * (1 + np.random.default_rng(seed).pareto(exponent - 1, size=size))


def matrix(eigenvalues, shape, seed=0):
    """A float32 matrix W with these eigenvalues of W^T W."""
    rng = np.random.default_rng(seed)
    n = len(eigenvalues)
    left = np.linalg.qr(rng.normal(size=(shape[0], n)))[0]
    right = np.linalg.qr(rng.normal(size=(shape[1], n)))[0]
    return (left * np.sqrt(eigenvalues) @ right.T).astype(np.float32)


def spectra(layers, *, model="net", seed=0, **columns):
    """One direction of every (layer, rows, columns)."""
    rows = [
        {
            "model": model,
            "seed": seed,
            "epoch": 7,
            "final": True,
            "part": "whole",
            "layer_index": i,
            "layer": name,
            "kind": "linear",
            "role": "linear",
            "n_rows": n_rows,
            "n_columns": n_columns,
            "index": 1,
        }
        | columns
        for i, (name, n_rows, n_columns) in enumerate(layers)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("exponent", [1.5, 2.5, 4.0, 7.0])
def test_pareto_exponents_are_found_within_three_standard_errors(exponent):
    for seed in range(5):
        tail = fit_tail(pareto(exponent, 400, seed))
        assert abs(tail.exponent - exponent) < 3 * tail.sigma
        assert tail.sigma == pytest.approx((tail.exponent - 1) / np.sqrt(tail.n))
        assert tail.ks < 0.06


def test_tail_is_the_maximum_likelihood_of_its_own_values_and_scales():
    body = np.random.default_rng(1).uniform(0.1, 2, size=150)
    values = np.concatenate([body, pareto(3.0, 250)])
    tail = fit_tail(values)
    above = np.sort(values[values >= tail.xmin * (1 - 1e-12)])
    assert above.size == tail.n
    assert tail.exponent == pytest.approx(1 + tail.n / np.log(above / tail.xmin).sum())
    # the tail starts about where the body ends
    assert 1.5 < tail.xmin < 4
    assert 100 < tail.n < 300
    model = 1 - (above / tail.xmin) ** (1 - tail.exponent)
    steps = np.arange(above.size) / above.size
    distance = max(np.abs(model - steps).max(), np.abs(model - steps - 1 / above.size).max())
    assert tail.ks == pytest.approx(distance, abs=2 / above.size)
    larger = fit_tail(1e-9 * values)
    assert larger.exponent == pytest.approx(tail.exponent)
    assert larger.xmin == pytest.approx(1e-9 * tail.xmin)


@pytest.mark.parametrize("kind", ["pareto", "gaussian", "ties"])
def test_the_tail_starts_where_the_library_would_start_it(kind):
    for seed in range(3):
        values = pareto(2.5, 80, seed, xmin=1.0) / 100
        if kind == "gaussian":
            weight = np.random.default_rng(seed).normal(size=(60, 90))
            values = np.linalg.svd(weight, compute_uv=False) ** 2 / 300
        if kind == "ties":
            values = np.round(values, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            theirs = powerlaw.Fit(
                values, discrete=False, parameter_ranges={"alpha": [1, None]}, verbose=0
            )
        ours = fit_tail(values)
        assert ours.xmin == pytest.approx(theirs.xmin)
        assert ours.ks == pytest.approx(theirs.D)
        assert ours.exponent == pytest.approx(theirs.power_law.alpha)
        assert ours.sigma == pytest.approx(theirs.power_law.standard_err)
        assert ours.n == theirs.n_tail


def test_gaussian_matrices_have_no_tail_and_a_large_distance():
    for seed in range(2):
        weight = np.random.default_rng(seed).normal(size=(256, 512))
        tail = fit_tail(np.linalg.svd(weight, compute_uv=False) ** 2)
        assert tail.ks > 0.08
        assert tail.n < 64


def test_tail_keeps_quiet_and_refuses_what_it_cannot_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_tail(np.concatenate([pareto(8.0, 50), np.zeros(3)]))
    with pytest.raises(NoFitError, match="9 different positive values of 11"):
        fit_tail(np.concatenate([np.arange(1.0, 10), [0.0, -1.0]]))
    with pytest.raises(NoFitError, match="1 different"):
        fit_tail(np.ones(30))
    with pytest.raises(NumericalError, match="eigenvalues of fc"):
        fit_tail(np.append(pareto(2.0, 20), np.nan), name="eigenvalues of fc")


def test_decay_uses_the_leading_twenty():
    k = np.arange(1.0, 41)
    values = np.where(k <= 20, k**-0.7, 0.1 * k**-3.0)
    assert weight_decay_exponent(values) == pytest.approx(0.7)
    assert weight_decay_exponent(k[:8] ** -1.2) == pytest.approx(1.2)


def test_table_of_two_networks():
    heavy = pareto(2.5, 60, seed=3)
    k = np.arange(1.0, 41)
    networks = {
        ("net", 0): {"conv.weight": matrix(heavy, (60, 90)).reshape(60, 10, 3, 3)},
        ("net", 1): {
            "conv.weight": matrix(k**-1.4, (60, 90)).reshape(60, 10, 3, 3),
            "head.weight": matrix(np.arange(1.0, 9), (8, 60)),
            "head.bias": np.zeros(8),
        },
    }
    layers = [("conv", 60, 90), ("head", 8, 60)]
    table = pd.concat(
        [
            spectra(layers[:1]),
            spectra(layers, seed=1),
            spectra(layers, seed=2),  # another network, not asked for
            spectra([("conv", 1, 1)], final=False),
            spectra([("conv", 1, 1)], part="first"),
        ]
    )
    found = fit_weight_tails(networks, table)
    assert list(zip(found["seed"], found["layer"], strict=True)) == [
        (0, "conv"),
        (1, "conv"),
        (1, "head"),
    ]
    expected = fit_tail(heavy)
    assert found["tail_exponent"][0] == pytest.approx(expected.exponent, rel=1e-3)
    assert found["tail_xmin"][0] == pytest.approx(expected.xmin, rel=1e-3)
    assert found["tail_n"][0] == expected.n
    # sixty rows, of which forty are independent: the rest is rounding, and is cut
    assert found["decay"][1] == pytest.approx(0.7, abs=1e-4)
    assert found["tail_n"][1] <= 40
    head = found.iloc[2]
    assert head["status"] == "no fit"
    assert "8 different positive values" in head["reason"]
    assert np.isfinite(head["decay"])
    assert head[load_schema("curvature/weights").nullable[1:]].isna().all()


def test_networks_that_do_not_fit_the_spectra_are_refused():
    good = {"fc.weight": matrix(pareto(2.0, 20), (20, 30))}
    table = spectra([("fc", 20, 30)])
    with pytest.raises(DataError, match="no final layers of other, seed 0"):
        fit_weight_tails({("other", 0): good}, table)
    with pytest.raises(DataError, match=r"net, seed 0: no array 'fc\.weight'"):
        fit_weight_tails({("net", 0): {"fc.bias": np.zeros(3)}}, table)
    with pytest.raises(DataError, match="layer fc is 20 x 30, its gradient 20 x 31"):
        fit_weight_tails({("net", 0): good}, spectra([("fc", 20, 31)]))
    broken = {"fc.weight": np.full((20, 30), np.nan)}
    with pytest.raises(NumericalError, match="weight of net, seed 0, layer fc"):
        fit_weight_tails({("net", 0): broken}, table)


def test_script_reads_the_last_epoch_of_every_network(tmp_path, root, run_script):
    rng = np.random.default_rng(0)
    files = {name: tmp_path / f"{name}.safetensors" for name in ("one", "two")}
    last = {}
    for name, path in files.items():
        arrays = {}
        for seed in (0, 1):
            for epoch in (0, 12):
                weight = rng.normal(size=(20, 30)).astype(np.float32)
                arrays[f"{seed}/{epoch}/fc.weight"] = weight
            last[name, seed] = {"fc.weight": weight}
        write_arrays(arrays, path, Provenance(parameters={}))
    table = pd.concat(
        [spectra([("fc", 20, 30)], model=name, seed=seed) for name in files for seed in (0, 1)]
    )
    source, output = tmp_path / "spectra.parquet", tmp_path / "weights.parquet"
    write_table(table, source, Provenance(parameters={}))
    command = ["--spectra", source, "--output", output]
    for name, path in files.items():
        command += ["--networks", path, "--model-name", name]
    assert run_script("fit_weight_tails", *command).returncode == 0
    expected = fit_weight_tails(last, table)
    assert len(expected) == 4
    pd.testing.assert_frame_equal(read_table(output), expected, check_dtype=False)
    refused = run_script("fit_weight_tails", *command[:-2])
    assert refused.returncode == 1
    assert "equally often" in refused.stderr
