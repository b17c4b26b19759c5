"""Synthetic tables with planted answers, for every claim that tables can judge."""

import math

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.verdicts import judge

CLAIMS = {claim.id: claim for claim in load_claims()}


def weights(n_directions, gamma):
    strength = np.arange(1.0, n_directions + 1) ** -gamma
    return strength / np.sqrt(np.sum(strength**2))


def teacher(dimension, seed, *, study="quadratic", degree=2, gamma=0.4, readout="identity"):
    """The columns every recovery table starts with."""
    return {
        "study": study,
        "degree": degree,
        "dimension": dimension,
        "feature_dimension": math.comb(dimension + degree - 1, degree),
        "n_directions": math.isqrt(dimension),
        "gamma": gamma,
        "readout": readout,
        "seed": seed,
    }


def make_thresholds(
    *,
    dimensions=(25, 36, 49),
    seeds=5,
    on_weakness=1.0,
    on_features=1.0,
    factor=3.0,
    noise=0.05,
    grid=(1.0, 1e9),
    **study,
):
    """n* = factor D^on_features (1/lambda^2)^on_weakness, with log-normal noise."""
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            who = teacher(dimension, seed, **study)
            rng = np.random.default_rng([dimension, seed, who["degree"]])
            for k, weight in enumerate(weights(who["n_directions"], who["gamma"]), start=1):
                size = factor * who["feature_dimension"] ** on_features
                size *= weight ** (-2 * on_weakness) * math.exp(noise * rng.normal())
                censored = "below" if size < grid[0] else "above" if size > grid[1] else "no"
                rows.append(
                    {
                        **who,
                        "direction": k,
                        "weight": weight * (-1) ** (k + seed),
                        "threshold": who["feature_dimension"] / weight**2,
                        "half_recovery": size if censored == "no" else np.nan,
                        "censored": censored,
                    }
                )
    return pd.DataFrame(rows)


def make_directions(thresholds, *, sizes, decay=1.0, chance=0.01, noise=0.0):
    """cos^2 = 1 - (n/n*)^-decay / 2 above n*/2, and ``chance`` below it."""
    rows = []
    for row in thresholds.to_dict("records"):
        rng = np.random.default_rng([row["dimension"], row["seed"], row["direction"]])
        star = row["half_recovery"]
        if math.isnan(star):
            star = math.inf if row["censored"] == "above" else 1e-9
        for size in sizes:
            cos2 = chance if size <= star / 2 else 1 - 0.5 * (size / star) ** -decay
            cos2 = 1 - (1 - cos2) * math.exp(noise * rng.normal())
            keep = {name: row[name] for name in (*teacher(4, 0), "direction")}
            rows.append({**keep, "sample_size": size, "cos2": float(np.clip(cos2, 0, 1))})
    return pd.DataFrame(rows)


def make_widths(slope, *, dimensions=(25, 50, 100, 200), seeds=5, noise=0.05):
    """Overlaps of direction 1, linear in log n; from 0.1 to 0.9 in about 4 + slope log d."""
    sizes = np.geomspace(10, 1e8, 40)
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([dimension, seed])
            width = 4 + slope * math.log(dimension / 50) + noise * rng.normal()
            middle = math.log(1e4) + rng.normal()
            cos2 = 0.5 + 0.8 * (np.log(sizes) - middle) / width
            who = {**teacher(dimension, seed), "direction": 1}
            rows += [
                {**who, "sample_size": size, "cos2": value}
                for size, value in zip(sizes, np.clip(cos2, 0, 1), strict=True)
            ]
    return pd.DataFrame(rows)


def make_metrics(*, gamma, law, exponent, tail_exponent, seeds=5, noise=0.02, dimension=49):
    """Errors whose law (1 - MSE or MSE) is a power of n with a planted exponent."""
    sizes = np.geomspace(1e3, 1e6, 13)
    who = teacher(dimension, 0)
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for j, size in enumerate(sizes):
            # 0, 0, 0, 1, ..., d1 - 1, d1, d1, d1: the window has 6 sizes
            recovered = int(np.clip(j - 3, 0, who["n_directions"]))
            measured = 0.2 * (size / 3e4) ** exponent * math.exp(noise * rng.normal())
            theory = 0.3 * (size / 3e4) ** tail_exponent
            if not 1 <= recovered < who["n_directions"]:
                measured = 0.9  # outside the window the law does not hold
                theory = 0.0 if law == "mse" else 1.0
            mse, tail = (measured, theory) if law == "mse" else (1 - measured, 1 - theory)
            for second_layer in ("same_sample", "independent", "outliers"):
                rows.append(
                    {
                        **teacher(dimension, seed, study=f"gamma{gamma}", gamma=gamma),
                        "sample_size": size,
                        "second_layer": second_layer,
                        "mse": mse if second_layer == "independent" else 0.5,
                        "n_recovered": recovered,
                        "tail_mse": tail,
                    }
                )
    return pd.DataFrame(rows)


def make_kernel(exponent, *, dimensions=(25, 50, 100), seeds=5, largest=1e9, noise=0.03):
    """Kernel errors that fall through 1/2 at n = d^exponent."""
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([dimension, seed, 7])
            middle = exponent * math.log(dimension) + noise * rng.normal()
            for size in np.geomspace(5, largest, 30):
                mse = 1 / (1 + math.exp(math.log(size) - middle))
                who = teacher(dimension, seed, study="linear", degree=1)
                rows.append({**who, "sample_size": size, "mse": mse})
    return pd.DataFrame(rows)


def make_exponents(
    *,
    conv=2.0,
    head=3.0,
    transfer=0.01,
    lognormal=0.9,
    bounded=1.0,
    seeds=4,
    layers=20,
):
    """Exponents of a convolutional network and an MLP, with planted medians and shares."""
    rows = []
    for model in ("resnet18", "mlp"):
        for seed in range(seeds):
            rng = np.random.default_rng([seed, len(model)])
            for index in range(layers + 1):
                inner = "conv" if model == "resnet18" else "linear"
                kind = "head" if index == layers else inner
                middle = {"conv": conv, "head": head, "linear": 1.0}[kind]
                rows.append(
                    {
                        "model": model,
                        "seed": seed,
                        "layer": f"layer{index}",
                        "kind": kind,
                        "status": "fit",
                        "alpha": middle + 0.1 * rng.normal(),
                        "transfer_error": transfer * math.exp(0.3 * rng.normal()),
                        "transfer_error_sorted": 2 * transfer,
                        "participation_ratio": 1.5 if index < bounded * (layers + 1) else 9.0,
                        "participation_bound": 2.5,
                        "rank_model": "lognormal" if index < lognormal * layers else "power_law",
                    }
                )
    return pd.DataFrame(rows)


@pytest.fixture
def resampling():
    return Resampling(confidence=0.95, resamples=200, generator=np.random.default_rng(0))


@pytest.fixture
def verdict():
    """Verdict on a claim by its id."""
    return lambda claim_id, measurement: judge(CLAIMS[claim_id], measurement)


@pytest.fixture
def claims():
    return CLAIMS


@pytest.fixture
def world():
    """The generators of this file."""
    return {
        "thresholds": make_thresholds,
        "directions": make_directions,
        "widths": make_widths,
        "metrics": make_metrics,
        "kernel": make_kernel,
        "exponents": make_exponents,
    }
