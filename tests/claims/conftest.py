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


def teacher(
    dimension,
    seed,
    *,
    study="wide",
    features="equivalent",
    degree=2,
    gamma=0.4,
    readout="identity",
    width=None,
):
    """The columns every recovery table starts with; the width grows with d unless it is given."""
    return {
        "study": study,
        "features": features,
        "degree": degree,
        "dimension": dimension,
        "feature_dimension": math.comb(dimension + degree - 1, degree),
        "n_directions": math.isqrt(dimension) if width is None else width,
        "gamma": gamma,
        "readout": readout,
        "noise": 0.0,
        "seed": seed,
    }


def make_thresholds(
    *,
    dimensions=(25, 36, 49),
    seeds=5,
    on_weakness=1.0,
    on_features=1.0,
    predicted=1.0,
    factor=3.0,
    noise=0.05,
    grid=(1.0, 1e9),
    **study,
):
    """n* = factor D^on_features (1/lambda^2)^on_weakness, with log-normal noise.

    The prediction is the same with the power ``predicted`` of 1/lambda^2 and of D.
    """
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            who = teacher(dimension, seed, **study)
            size_of_features = who["feature_dimension"]
            rng = np.random.default_rng([dimension, seed, who["degree"]])
            for k, weight in enumerate(weights(who["n_directions"], who["gamma"]), start=1):
                size = factor * size_of_features**on_features
                size *= weight ** (-2 * on_weakness) * math.exp(noise * rng.normal())
                censored = "below" if size < grid[0] else "above" if size > grid[1] else "no"
                rows.append(
                    {
                        **who,
                        "direction": k,
                        "weight": weight * (-1) ** (k + seed),
                        "threshold": size_of_features / weight**2,
                        "half_recovery": size if censored == "no" else np.nan,
                        "censored": censored,
                        "predicted_half_recovery": (size_of_features / weight**2) ** predicted,
                    }
                )
    return pd.DataFrame(rows)


def make_directions(thresholds, *, sizes, decay=1.0, chance=0.01, noise=0.0):
    """cos^2 = 1 - (n/n*)^-decay / 2 above n*/2, and ``chance`` below it; predicted 0.02 less."""
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
            cos2 = float(np.clip(cos2, 0, 1))
            who = {**keep, "sample_size": size}
            rows.append({**who, "cos2": cos2, "predicted_cos2": cos2 - 0.02})
    return pd.DataFrame(rows)


def make_widths(
    slope,
    *,
    dimensions=(25, 50, 100, 200),
    seeds=5,
    noise=0.05,
    start=1e4,
    middle=0.0,
    **study,
):
    """Overlaps of direction 1, linear in log n; from 0.1 to 0.9 in about 4 + slope log d.

    They are 1/2 at about n = start d^middle.
    """
    study = {"study": "smoothing", "features": "hermite", "degree": 1, "width": 4} | study
    sizes = np.geomspace(10, 1e8, 40)
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([dimension, seed])
            width = 4 + slope * math.log(dimension / 50) + noise * rng.normal()
            centre = math.log(start * dimension**middle) + noise * rng.normal()
            cos2 = 0.5 + 0.8 * (np.log(sizes) - centre) / width
            who = {**teacher(dimension, seed, **study), "direction": 1}
            rows += [
                {**who, "sample_size": size, "cos2": value, "predicted_cos2": value}
                for size, value in zip(sizes, np.clip(cos2, 0, 1), strict=True)
            ]
    return pd.DataFrame(rows)


def window_of(width, gamma, dimension, degree=2):
    """n = D / lambda_3^2 and D / lambda_h^2, h = d1/2, written out."""
    lambdas = weights(width, gamma)
    features = math.comb(dimension + degree - 1, degree)
    return features / lambdas[2] ** 2, features / lambdas[width // 2 - 1] ** 2


def make_metrics(
    *, gamma, law, exponent, seeds=5, noise=0.02, dimension=64, width=30, other=0.5, **study
):
    """Errors whose law (1 - MSE or MSE) is a power of n with a planted exponent in the window.

    Outside it the error is 0.9; other second layers have the error ``other``.
    """
    low, high = window_of(width, gamma, dimension)
    sizes = np.geomspace(low / 8, high * 8, 40)
    study = {"study": f"gamma{gamma}", **study}
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        who = teacher(dimension, seed, gamma=gamma, width=width, **study)
        for size in sizes:
            measured = 0.2 * (size / low) ** exponent * math.exp(noise * rng.normal())
            mse = measured if law == "mse" else 1 - measured
            mse = mse if low <= size <= high else 0.9
            for second_layer in ("same_sample", "independent", "outliers"):
                error = mse if second_layer == "independent" else other
                rows.append(
                    {**who, "sample_size": size, "second_layer": second_layer, "mse": error}
                )
    return pd.DataFrame(rows)


def make_baselines(
    exponent, *, dimensions=(25, 50, 100), seeds=5, largest=1e9, noise=0.03, law=float, **study
):
    """Errors of the polynomial kernel that fall through 1/2 at n = law(d)^exponent.

    Another method, which no claim uses, is beside it.
    """
    study = {"study": "depth", "features": "hermite", "degree": 1, "width": 3} | study
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([dimension, seed, 7])
            middle = exponent * math.log(law(dimension)) + noise * rng.normal()
            for size in np.geomspace(5, largest, 60):
                mse = 1 / (1 + math.exp(math.log(size) - middle))
                who = {**teacher(dimension, seed, **study), "sample_size": size}
                rows.append({**who, "method": "polynomial", "mse": mse})
                rows.append({**who, "method": "network", "mse": 0.1})
    return pd.DataFrame(rows)


def make_perturbation(
    *,
    order=2.0,
    decay=-0.5,
    looseness=1.0,
    dimensions=(40, 60),
    seeds=4,
    noise=0.03,
    unresolved=0,
    **study,
):
    """Error ~ ||Delta||^order, ||Delta|| ~ (n/D)^decay, Davis-Kahan / sine = 3 k^looseness.

    The first ``unresolved`` sample sizes are not resolved, and the expansion's error there is 9.
    """
    study = {"study": "linear", "features": "hermite", "degree": 1, "width": 4} | study
    rows = []
    for dimension in dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([dimension, seed, 3])
            who = teacher(dimension, seed, **study)
            level = math.exp(rng.normal())
            for j, ratio in enumerate(np.geomspace(30, 3000, 6)):
                norm = level * ratio**decay * math.exp(noise * rng.normal())
                for k in range(1, who["n_directions"] + 1):
                    error = k * norm**order * math.exp(noise * rng.normal())
                    sine = 0.1 * norm * k**0.3
                    rows.append(
                        {
                            **who,
                            "sample_size": ratio * who["feature_dimension"],
                            "direction": k,
                            "operator_norm": norm,
                            "sin_theta": sine,
                            "expansion_error": error if j >= unresolved else 9.0,
                            "davis_kahan": 3 * k**looseness * sine,
                            "resolved": j >= unresolved,
                        }
                    )
    return pd.DataFrame(rows)


def make_error_exponents(*, gap=0.01, widths=(30, 100, 300), gammas=(0.4, 0.8)):
    """Exponents linear in 1/log(last/first), that end at the asymptotic one plus 0.1."""
    rows = []
    for gamma in gammas:
        for width in widths:
            for seed in range(2):
                first, last = 3, width // 5
                ours = 1 / (2 * gamma) - 0.9 - 0.2 / math.log(last / first)
                layers = {"independent": ours, "tail": ours - gap, "same_sample": ours + 0.2}
                rows += [
                    {
                        "gamma": gamma,
                        "n_directions": width,
                        "seed": seed,
                        "first": first,
                        "last": last,
                        "second_layer": name,
                        "exponent": exponent + 0.01 * (-1) ** seed,
                    }
                    for name, exponent in layers.items()
                ]
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
        "baselines": make_baselines,
        "perturbation": make_perturbation,
        "error_exponents": make_error_exponents,
        "window": window_of,
        "exponents": make_exponents,
    }
