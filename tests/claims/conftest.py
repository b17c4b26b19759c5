"""Synthetic tables with planted answers, for every claim that tables can judge."""

import itertools
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


STACKS = {
    "resnet": [*["conv"] * 6, "pointwise_conv", "head"],
    "separable": [*["depthwise_conv", "pointwise_conv"] * 3, "head"],
    "vgg": [*["conv"] * 4, "linear", "head"],
    "mlp": [*["linear"] * 3, "head"],
    "gpt": [*["attention_qkv", "attention_output", "mlp_up", "mlp_down"] * 2, "head"],
    "vit": [
        "patch_embedding",
        *["attention_qkv", "attention_output", "mlp_up", "mlp_down"] * 2,
        "head",
    ],
}
"""Roles of a network's layers, in order."""

EXPERIMENTS = {
    "architectures": (
        "architecture",
        {name: name for name in ("resnet18", "vgg11", "mlp", "gpt2", "vit_tiny")},
    ),
    "layer_norm": ("normalisation", {"vit_tiny": "layer", "vit_no_norm": "none"}),
    "residual": ("skip_scale", {"resnet18": 1.0, "resnet_half": 0.5, "resnet_no_skip": 0.0}),
    "classes": ("n_classes", {"mlp_2": 2, "mlp_10": 10, "mlp_100": 100, "mlp_1000": 1000}),
    "outputs": ("n_classes", {"vit_10": 10, "vit_100": 100}),
    "task": ("task", {"gpt_language": "language_modelling", "gpt_classes": "classification"}),
    "width": ("width", {"mlp_w64": 64, "mlp_w128": 128, "mlp": 256, "mlp_w512": 512}),
    "batch_norm": ("normalisation", {"resnet18": "batch", "resnet_no_norm": "none"}),
    "separable": ("separable", {"resnet18": "false", "separable": "true"}),
}
MAIN = tuple(EXPERIMENTS["architectures"][1])
NETWORKS = sorted({model for _, variants in EXPERIMENTS.values() for model in variants})
INNER = ("attention_qkv", "attention_output", "mlp_up", "mlp_down")


def make_layers(models=NETWORKS, seeds=4):
    """One row per network, seed and layer: who it is."""
    rows = []
    for model in models:
        stack = next(stack for name, stack in STACKS.items() if model.startswith(name))
        for seed in range(seeds):
            for index, role in enumerate(stack):
                kind = "conv" if "conv" in role or role == "patch_embedding" else "linear"
                kind = "head" if role == "head" else kind
                rows.append((model, seed, index, f"layer{index}", kind, role))
    return pd.DataFrame(rows, columns=["model", "seed", "layer_index", "layer", "kind", "role"])


def noise_of(layers, scale, *stream):
    """Normal noise, the same for a table of the same layers."""
    return scale * np.random.default_rng([len(layers), *stream]).normal(size=len(layers))


def make_exponents(
    *,
    models=NETWORKS,
    seeds=4,
    alpha=None,
    shift=None,
    transfer=0.01,
    lognormal=0.9,
    bounded=1.0,
    ratio=None,
    start=None,
    start_lognormal=1.0,
    noise=0.1,
):
    """Exponents with planted medians and shares, after training and (resnet18, vgg11) at epoch 0.

    ``alpha`` by role, ``shift`` of alpha and ``ratio`` (participation) by network, ``start`` alpha
    by role at epoch 0. Shares are of the layers of every training, first come first served.
    """
    middle = {"conv": 2.0, "pointwise_conv": 2.0, "depthwise_conv": 1.4, "head": 3.0, "linear": 1.0}
    middle |= dict.fromkeys(INNER, 1.0) | {"mlp_up": 0.8} | (alpha or {})
    layers = make_layers(models, seeds)
    last = layers.assign(epoch=12, final=True)
    first = layers[layers["model"].isin(["resnet18", "vgg11"])].assign(epoch=0, final=False)
    tables = []
    for place, (rows, values) in enumerate(
        ((last, middle), (first, middle | {"conv": 1.5, "pointwise_conv": 1.5} | (start or {})))
    ):
        mean = rows["role"].map(values).fillna(1.0) + rows["model"].map(shift or {}).fillna(0.0)
        share = (rows["layer_index"] + 0.5) / rows.groupby("model")["layer_index"].transform(
            lambda index: index.max() + 1
        )
        wanted = (lognormal, start_lognormal)[place]
        tables.append(
            rows.assign(
                status="fit",
                n_directions=20,
                alpha=mean + noise_of(rows, noise, 1),
                s=mean * 0.5,
                transfer_error=transfer * np.exp(noise_of(rows, 0.3, 2)),
                transfer_error_sorted=2 * transfer,
                participation_ratio=np.where(share <= bounded, 1.5, 9.0)
                + rows["model"].map(ratio or {}).fillna(0.0)
                + noise_of(rows, 0.01, 3),
                participation_bound=2.5,
                rank_model=np.where(share <= wanted, "lognormal", "power_law"),
            )
        )
    return pd.concat(tables, ignore_index=True)


def make_experiments(exponents, *, phi_a=None, phi_delta=None, without=()):
    """The networks of every experiment side by side, with planted |slopes| of the alignments.

    ``phi_a`` and ``phi_delta`` are their magnitudes by network; layers alternate in sign.
    """
    phi_a = {"vit_tiny": 0.1, "vit_no_norm": 0.8} | (phi_a or {})
    phi_delta = {"resnet18": 0.2, "resnet_half": 0.5, "resnet_no_skip": 0.9} | (phi_delta or {})
    tables = []
    for experiment, (over, variants) in EXPERIMENTS.items():
        if experiment in without:
            continue
        for model, variant in variants.items():
            rows = exponents[exponents["model"] == model]
            sign, stream = (-1.0) ** rows["layer_index"], sum(model.encode())
            value = math.nan if isinstance(variant, str) else float(variant)
            rows = rows.assign(
                experiment=experiment,
                over=over,
                variant=str(variant),
                value=value,
                phi_a=sign * (phi_a.get(model, 0.3) + noise_of(rows, 0.02, 4, stream)),
                phi_delta=sign * (phi_delta.get(model, 0.3) + noise_of(rows, 0.02, 5, stream)),
            )
            tables.append(rows)
    return pd.concat(tables, ignore_index=True)


def make_ladder(exponents, *, slope=0.05, chi=3.0, spread=0.0):
    """Both gaps to Kronecker, and a rung that no claim uses; true factors have 0.3 more slope.

    log10 of the median gap is log10 chi + spread |alpha - 2|; ``slope`` is of every layer.
    """
    last = exponents[exponents["final"]].reset_index(drop=True)
    median = chi * 10 ** (spread * (last["alpha"] - 2).abs())
    tables = []
    for ratio, extra in (
        ("exact/kronecker", 0.0),
        ("exact/kronecker_true", 0.3),
        ("fisher/positions", 5.0),
    ):
        values = slope + extra + noise_of(last, 0.02, 6)
        rows = last[["model", "seed", "layer_index", "layer", "kind", "role"]]
        tables.append(rows.assign(ratio=ratio, median=median + extra, slope=values, status="fit"))
        tables[-1] = tables[-1].assign(slope_low=values - 0.1, slope_high=values + 0.1)
    return pd.concat(tables, ignore_index=True)


def make_decomposition(exponents, *, identity=1e-13, kronecker=1e-12, r=0.97):
    """Gaps of the identities, the largest of them planted in the last layer, with both signs."""
    rows = exponents[exponents["final"]].reset_index(drop=True)
    last = rows.index == len(rows) - 1
    return rows.assign(
        identity_gap=np.where(last, -identity, identity / 10),
        kronecker_gap=np.where(last, kronecker, kronecker / 10),
        r_kronecker=r + noise_of(rows, 0.01, 7),
    )


def make_independence(exponents, *, halves=0.08, permuted=1.2, free=0.015):
    """Errors of the main networks' layers, log-normal around planted medians."""
    rows = exponents[exponents["final"] & exponents["model"].isin(MAIN)].reset_index(drop=True)
    scatter = np.exp(noise_of(rows, 0.2, 8))
    return rows.assign(
        error_same=rows["transfer_error"],
        error_halves=halves * scatter,
        error_repeat=1.5 * halves * scatter,
        error_permuted=permuted * scatter,
        error_free=free * scatter,
    )


def make_weights(exponents, *, decay=-0.3, tail=2.0):
    """The weights' exponents minus s, by the author's definition and of the density."""
    rows = exponents[exponents["final"]].reset_index(drop=True)
    columns = ["model", "seed", "layer_index", "layer", "kind", "role"]
    return rows[columns].assign(
        decay=rows["s"] + decay + noise_of(rows, 0.05, 9),
        tail_exponent=rows["s"] + tail + noise_of(rows, 0.05, 10),
    )


def make_factor_models(exponents, *, delta=0.75, a=1.0):
    """Share of the layers, first come first served, whose factor has the gradient's rank model."""
    rows = exponents[exponents["final"] & exponents["model"].isin(MAIN)].reset_index(drop=True)
    share = (np.arange(len(rows)) + 0.5) / len(rows)
    factors = [
        rows.assign(factor=factor, same=share <= wanted)
        for factor, wanted in (("delta", delta), ("a", a))
    ]
    return pd.concat(factors, ignore_index=True)


def make_finite_differences(*, models=("mlp", "resnet18"), seeds=4, negative=0.5, noise=3.0):
    """h = sigma^2, and finite differences with log-normal noise, a share of them negative."""
    rows = []
    for layer in make_layers(models, seeds).to_dict("records"):
        rng = np.random.default_rng([layer["seed"], layer["layer_index"], 11])
        for k in range(1, 21):
            sigma = k**-0.7
            difference = sigma**2 * math.exp(noise * rng.normal())
            difference *= -1 if k % 10 < 10 * negative else 1
            rows.append(
                {
                    **layer,
                    "index": k,
                    "singular_value": sigma,
                    "directional_curvature": sigma**2,
                    "finite_difference": difference,
                    "step": 1e-3,
                }
            )
    return pd.DataFrame(rows)


RACERS = {
    "adamw": 0.0,
    "spectral_newton_1": 1.0,
    "spectral_newton_2": 2.0,
    "spectral_newton_measured": 1.5,
    "muon": 1.8,
    "soap": 0.6,
    "sgd": -0.5,
    "sgd_by_damping": -4.0,
}
"""Methods of the race, and their gains over AdamW in points."""


def make_race(*, gains=None, loss_gain=0.05, tasks=None, seeds=5, epochs=3, noise=0.1, base=90.0):
    """Accuracies around 90 % plus a planted gain in points by method, paired by seed.

    ``tasks`` by race. Loss falls by ``loss_gain`` nats per point of gain. Earlier epochs have other
    values in another order of the methods, so that only the last one gives the planted gains.
    """
    gains = RACERS | (gains or {})
    tasks = tasks or {"images": "classification", "text": "language_modelling"}
    rows = []
    for place, (race, task) in enumerate(tasks.items()):
        for seed in range(seeds):
            rng = np.random.default_rng([place, seed, 17])
            shared = base + 3 * rng.normal()
            for method, gain in gains.items():
                points = shared + gain + noise * rng.normal()
                for epoch in range(1, epochs + 1):
                    now = points if epoch == epochs else 50 - 3 * gain + epoch
                    rows.append(
                        {
                            "race": race,
                            "task": task,
                            "model": "gpt2" if task == "language_modelling" else "resnet18",
                            "train_size": 500,
                            "steps": 60,
                            "method": method,
                            "seed": seed,
                            "epoch": epoch,
                            "test_loss": 1.0 - loss_gain * (now - base),
                            "test_accuracy": now / 100,
                            "diverged": False,
                            "n_test": 400,
                        }
                    )
    return pd.DataFrame(rows)


def make_tuning(race, *, chosen=None, rates=(0.001, 0.003, 0.01), decays=(0.0, 0.1), trainings=1):
    """The grid of every method in every race, with the middle learning rate or ``chosen``."""
    rows = [
        {
            "race": name,
            "method": method,
            "learning_rate": rate,
            "weight_decay": decay,
            "trainings": trainings,
            "chosen": (rate, decay) == ((chosen or {}).get(method, rates[len(rates) // 2]), 0.0),
        }
        for name in race["race"].unique()
        for method in race["method"].unique()
        for rate in rates
        for decay in decays
    ]
    return pd.DataFrame(rows)


def make_layer_rates(
    *, gains=None, models=("mlp",), races=("images",), seeds=5, noise=0.1, scaled=4
):
    """Accuracies around 97 % plus a planted gain in points by variant, paired by training."""
    gains = {"b = 0.5": 0.1, "b = 1": -0.2, "inverse": -1.0, "random": -0.5} | (gains or {})
    numbers = {"none": 0.0, "b = 0.5": 0.5, "b = 1": 1.0, "inverse": -1.0, "random": np.nan}
    rows = []
    for place, (race, model) in enumerate(itertools.product(races, models)):
        for seed in range(seeds):
            rng = np.random.default_rng([place, seed, 13])
            base = 97 + 5 * rng.normal()
            for variant, exponent in numbers.items():
                points = base + gains.get(variant, 0.0) + noise * rng.normal()
                rows.append(
                    {
                        "race": race,
                        "model": model,
                        "seed": seed,
                        "variant": variant,
                        "exponent": exponent,
                        "n_scaled": scaled if variant != "none" else 0,
                        "test_accuracy": points / 100,
                        "diverged": False,
                        "n_test": 400,
                    }
                )
    return pd.DataFrame(rows)


def make_spectra(exponents, *, kronecker=2.0, noise=0.1, drop=2.0, rho=0.5, surplus=0, n=24):
    """Kronecker curvature sigma^kronecker, beside rows that no claim may use.

    Alignments are ``rho`` up to k = c and 10^-drop times it beyond, c the number of classes of the
    networks ``mlp_<c>``. Their heads have c - 1 + surplus directions. No claim may use directions
    beyond the twentieth (in fits), untrained networks and halves of the batch.
    """
    layers = exponents[exponents["model"].isin([*MAIN, *EXPERIMENTS["classes"][1]])]
    name = layers["model"].str.removeprefix("mlp_")
    layers = layers.assign(classes=name.where(name.str.isdigit(), "10").astype(int))
    columns = ["model", "seed", "layer_index", "layer", "kind", "role", "final", "classes"]
    rows = layers[columns].merge(pd.DataFrame({"index": np.arange(1, n + 1)}), how="cross")
    most = np.where(rows["role"] == "head", rows["classes"] - 1 + surplus, n)
    rows = rows[rows["index"] <= most].reset_index(drop=True)
    sigma = rows["index"] ** -0.7
    curvature = np.where(rows["index"] <= 20, sigma**kronecker, 1e6)
    curvature *= np.exp(noise_of(rows, noise, 12))
    whole = rows.assign(
        part="whole",
        singular_value=sigma,
        kronecker=np.where(rows["final"], curvature, 1.0 / curvature),
        kronecker_true=np.where(rows["model"] == "gpt2", np.nan, curvature),
        rho_delta=rho * np.where(rows["index"] > rows["classes"], 10.0**-drop, 1.0),
    )
    halves = whole[whole["final"]].assign(part="first", kronecker=1.0, rho_delta=1e-9)
    return pd.concat([whole, halves], ignore_index=True).drop(columns="classes")


def make_curvature(*, exponents=None, experiments=None, ladder=None, spectra=None):
    """Every curvature table of a world in which all claims hold; settings by table."""
    fits = make_exponents(
        **{"shift": {"gpt_classes": 0.8}, "ratio": {"mlp_w512": 0.7}, "lognormal": 0.8}
        | (exponents or {})
    )
    race = make_race()
    return {
        "exponents": fits,
        "experiments": make_experiments(fits, **(experiments or {})),
        "ladder": make_ladder(fits, **{"spread": 1.0} | (ladder or {})),
        "decomposition": make_decomposition(fits),
        "independence": make_independence(fits),
        "weights": make_weights(fits),
        "factor_models": make_factor_models(fits),
        "finite_differences": make_finite_differences(),
        "race": race,
        "tuning": make_tuning(race),
        "layer_rates": make_layer_rates(),
        "spectra": make_spectra(fits, **{"surplus": 6} | (spectra or {})),
    }


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


@pytest.fixture(scope="session")
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
        "experiments": make_experiments,
        "ladder": make_ladder,
        "decomposition": make_decomposition,
        "independence": make_independence,
        "weights": make_weights,
        "factor_models": make_factor_models,
        "finite_differences": make_finite_differences,
        "race": make_race,
        "tuning": make_tuning,
        "layer_rates": make_layer_rates,
        "spectra": make_spectra,
        "curvature": make_curvature,
        "main": MAIN,
    }
