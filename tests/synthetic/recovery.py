"""Tables of the recovery room, each made once with planted laws."""

import itertools
import math

import numpy as np
import pandas as pd


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


SIZES = [*teacher(4, 0), "direction", "sample_size"]
"""Whose overlaps, and at which sample size."""


def censored(thresholds, low, high):
    """The sizes outside a grid as missing, with the side on which they are."""
    size = thresholds["half_recovery"]
    side = np.select([size < low, size > high], ["below", "above"], "no")
    return thresholds.assign(half_recovery=size.where(side == "no"), censored=side)


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
    tables = []
    for dimension, seed in itertools.product(dimensions, range(seeds)):
        who = teacher(dimension, seed, **study)
        size = who["feature_dimension"]
        rng = np.random.default_rng([dimension, seed, who["degree"]])
        lambdas = weights(who["n_directions"], who["gamma"])
        k = np.arange(1, lambdas.size + 1)
        star = factor * size**on_features * lambdas ** (-2 * on_weakness)
        columns = {
            "direction": k,
            "weight": lambdas * (-1.0) ** (k + seed),
            "threshold": size / lambdas**2,
            "half_recovery": star * np.exp(noise * rng.normal(size=k.size)),
            "predicted_half_recovery": factor * (size / lambdas**2) ** predicted,
        }
        tables.append(pd.DataFrame(who | columns))
    return censored(pd.concat(tables, ignore_index=True), *grid)


def sharp(ratio, decay, chance):
    """cos^2 = 1 - (n/n*)^-decay / 2 above n*/2, and ``chance`` below it."""
    return np.where(ratio <= 0.5, chance, 1 - 0.5 * np.maximum(ratio, 0.5) ** -decay)


def smooth(ratio):
    """cos^2 = 1 / (1 + (n/n*)^-2.5)."""
    return 1 / (1 + ratio**-2.5)


def make_directions(thresholds, *, sizes, decay=1.0, chance=0.01, noise=0.0):
    """Overlaps that rise sharply at n*, with log-normal noise on 1 - cos^2; predicted 0.02 less."""
    rows = thresholds.merge(pd.DataFrame({"sample_size": sizes}), how="cross")
    star = rows["half_recovery"].fillna(rows["censored"].map({"above": math.inf, "below": 1e-9}))
    angle = 1 - sharp(rows["sample_size"] / star, decay, chance)
    rng = np.random.default_rng(len(rows))
    cos2 = np.clip(1 - angle * np.exp(noise * rng.normal(size=len(rows))), 0, 1)
    return rows[SIZES].assign(cos2=cos2, predicted_cos2=cos2 - 0.02)


def make_smooth_directions(thresholds, *, sizes, noise=0.02, loss=0.0):
    """Overlaps that rise smoothly, the measured ones with noise and a share lost."""
    rows = thresholds.merge(pd.DataFrame({"sample_size": sizes}), how="cross")
    predicted = smooth(rows["sample_size"] / rows["predicted_half_recovery"])
    rng = np.random.default_rng(len(rows))
    scatter = noise * rng.normal(size=len(rows)) * (1 - predicted)
    cos2 = smooth(rows["sample_size"] / rows["half_recovery"]) * (1 - loss) + scatter
    return rows[[*SIZES, "weight", "threshold"]].assign(
        cos2=cos2.clip(1e-4, 1 - 1e-4), predicted_cos2=predicted
    )


def errors_of(directions):
    """Errors in three second layers, of the overlaps of a table of directions."""
    strength = directions["weight"] ** 2
    below = directions["sample_size"] < directions["threshold"]
    rows = directions.assign(
        mse=strength * (1 - directions["cos2"] ** 2),
        predicted_mse=strength * (1 - directions["predicted_cos2"] ** 2),
        tail_mse=strength * below,
    )
    who = rows.groupby([*teacher(4, 0), "sample_size"], sort=False)
    sums = who[["mse", "predicted_mse", "tail_mse"]].sum()
    means = (
        who[["cos2", "predicted_cos2"]]
        .mean()
        .set_axis(["feature_overlap", "predicted_overlap"], axis=1)
    )
    table = sums.join(means).reset_index()
    ratio = table["sample_size"] / table["feature_dimension"]
    layers = {"same_sample": 0.6 / (1 + ratio / 3), "independent": 0.0, "outliers": 0.02}
    errors = ["mse", "predicted_mse"]
    return pd.concat(
        [
            table.assign(second_layer=name, **{e: table[e] + 0.003 + more for e in errors})
            for name, more in layers.items()
        ],
        ignore_index=True,
    )


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
    exponent,
    *,
    dimensions=(25, 50, 100),
    seeds=5,
    sizes=(5, 1e9, 60),
    methods=("polynomial", "network"),
    noise=0.03,
    law=float,
    **study,
):
    """Errors of the polynomial kernel that fall through 1/2 at n = law(d)^exponent.

    The exponent of every further method, which no claim uses, is a tenth larger.
    """
    study = {"study": "depth", "features": "hermite", "degree": 1, "width": 3} | study
    grid = np.geomspace(*sizes)
    tables = []
    for dimension, seed in itertools.product(dimensions, range(seeds)):
        rng = np.random.default_rng([dimension, seed, 7])
        middle = exponent * math.log(law(dimension)) + noise * rng.normal()
        for place, method in enumerate(methods):
            mse = 1 / (1 + grid * math.exp(-(1 + 0.1 * place) * middle))
            columns = {"sample_size": grid, "method": method, "mse": mse}
            tables.append(pd.DataFrame(teacher(dimension, seed, **study) | columns))
    return pd.concat(tables, ignore_index=True)


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
    tables = []
    for dimension, seed in itertools.product(dimensions, range(seeds)):
        rng = np.random.default_rng([dimension, seed, 3])
        who = teacher(dimension, seed, **study)
        level, k = math.exp(rng.normal()), np.arange(1, who["n_directions"] + 1)
        for j, ratio in enumerate(np.geomspace(30, 3000, 6)):
            norm = level * ratio**decay * math.exp(noise * rng.normal())
            error = k * norm**order * np.exp(noise * rng.normal(size=k.size))
            sine = 0.1 * norm * k**0.3
            columns = {
                "sample_size": ratio * who["feature_dimension"],
                "direction": k,
                "operator_norm": norm,
                "gap": 1 / k,
                "sin_theta": sine,
                "expansion_error": error if j >= unresolved else 9.0,
                "davis_kahan": 3 * k**looseness * sine,
                "resolved": j >= unresolved,
            }
            tables.append(pd.DataFrame(who | columns))
    return pd.concat(tables, ignore_index=True)


def make_population(seeds=5, dimensions=(16, 25, 36, 49, 64, 100, 144)):
    """Losses 1 - cos^2 around the tilt, and weak even directions hidden at small d."""
    tables = []
    for dimension, seed in itertools.product(dimensions, range(seeds)):
        rng = np.random.default_rng([dimension, seed])
        lambdas = weights(math.isqrt(dimension), 0.4)
        k = np.arange(1, lambdas.size + 1)
        tilt = 12 * (1 + 2 * lambdas**2) / (dimension * lambdas) ** 2
        loss = np.minimum(tilt * np.exp(0.1 * rng.normal(size=k.size)), 0.95)
        hidden = (k % 2 == 0) & (dimension * lambdas < 12)
        columns = {
            "direction": k,
            "weight": lambdas * (-1.0) ** (k + 1),
            "cos2": 1 - np.where(hidden, 0.9, loss),
            "tilt": tilt,
        }
        tables.append(pd.DataFrame(teacher(dimension, seed) | columns))
    return pd.concat(tables, ignore_index=True)


def make_error_exponents(*, gap=0.01, widths=(30, 100, 300), gammas=(0.4, 0.8), seeds=2):
    """Exponents linear in 1/log(last/first), that end at the asymptotic one plus 0.1."""
    rows = []
    for gamma, width, seed in itertools.product(gammas, widths, range(seeds)):
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


def make_spectrum(seeds=1, outliers=True, quadrature=False):
    """A bulk between its edges and seven outliers, as eigenvalues or as nodes with their masses."""
    size, n = 1485, 349_000
    edge = 2 * math.sqrt(size / n)
    spikes = np.array([-0.75, 0.62, 0.53, -0.47, 0.41, 0.36, -0.33]) * (1 if outliers else 1e-3)
    tables = []
    for seed in range(seeds):
        bulk = edge * (2 * np.random.default_rng(seed).beta(1.5, 1.5, size - 7) - 1)
        mass = np.full(size, 1 / size)
        if quadrature:
            bulk = np.linspace(-0.99 * edge, 0.99 * edge, 90)
            mass = np.concatenate([np.full(90, (1 - 7 / size) / 90), mass[:7]])
        values = np.concatenate([bulk, spikes])
        inside = np.sqrt(np.maximum(edge**2 - values**2, 0))
        columns = {
            "sample_size": n,
            "eigenvalue": values,
            "mass": mass,
            "density": 2 * inside / (math.pi * edge**2),
            "edge_low": -edge,
            "edge_high": edge,
        }
        who = teacher(54, seed, study="quadratic", features="hermite")
        tables.append(pd.DataFrame(who | columns).sort_values("eigenvalue"))
    return pd.concat(tables, ignore_index=True)
