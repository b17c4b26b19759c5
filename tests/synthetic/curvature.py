"""Tables of the curvature room, each made once with planted values."""

import math

import numpy as np
import pandas as pd

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
LAYER = ["model", "seed", "layer_index", "layer", "kind", "role"]
LAST, TOP_K, GAMMA = 12, 20, 0.7
LAWS = ("power_law", "exponential", "lognormal")
FITTED = [
    *(f"{slope}{end}" for slope in ("alpha", "gamma", "s") for end in ("", "_low", "_high")),
    *("transfer_error", "participation_ratio", "participation_bound", "rank_model"),
    *(f"bic_{law}" for law in LAWS),
]


def make_layers(models=NETWORKS, seeds=4, named=None):
    """One row per network, seed and layer: who it is.

    ``named`` has the layers of networks, with their roles; those of the others have numbers.
    """
    rows = []
    for model in models:
        stack = next(stack for name, stack in STACKS.items() if model.startswith(name))
        layers = (named or {}).get(model) or {f"layer{i}": role for i, role in enumerate(stack)}
        for seed in range(seeds):
            for index, (layer, role) in enumerate(layers.items()):
                kind = "head" if role == "head" else "conv" if "conv" in role else "linear"
                rows.append((model, seed, index, layer, kind, role))
    return pd.DataFrame(rows, columns=LAYER)


def noise_of(layers, scale, *stream):
    """Normal noise, the same for a table of the same layers."""
    rng = np.random.default_rng([len(layers), *stream])
    return pd.Series(scale * rng.normal(size=len(layers)), index=layers.index)


def fits_of(rows, values, *, transfer, lognormal, bounded, bound, noise):
    """Exponents of layers at one epoch around planted values."""
    share = (rows["layer_index"] + 0.5) / rows.groupby("model")["layer_index"].transform(
        lambda index: index.max() + 1
    )
    slopes = {"alpha": values + noise_of(rows, noise, 1), "gamma": GAMMA, "s": GAMMA * values}
    ends = {f"{name}_low": value - 0.2 for name, value in slopes.items()}
    ends |= {f"{name}_high": value + 0.25 for name, value in slopes.items()}
    law = np.select(
        [share <= lognormal, share > 0.9], ["lognormal", "exponential"], default="power_law"
    )
    bic = {
        f"bic_{one}": noise_of(rows, 2, 20 + i) - 30 * (law == one) for i, one in enumerate(LAWS)
    }
    return rows.assign(
        **slopes,
        **ends,
        **bic,
        status="fit",
        reason="",
        n_directions=TOP_K,
        n_used=TOP_K,
        transfer_error=transfer * np.exp(noise_of(rows, 0.3, 2)),
        transfer_error_sorted=2 * transfer,
        participation_ratio=np.where(share <= bounded, 1.5, 9.0) + noise_of(rows, 0.01, 3),
        participation_bound=bound(slopes["alpha"] * GAMMA),
        rank_model=law,
    )


def make_exponents(
    *,
    models=NETWORKS,
    seeds=4,
    named=None,
    alpha=None,
    shift=None,
    transfer=0.01,
    lognormal=0.9,
    bounded=1.0,
    bound=lambda product: 2.5,
    ratio=None,
    early=None,
    start=None,
    start_lognormal=1.0,
    noise=0.1,
):
    """Exponents with planted medians and shares, after training and at the ``early`` epochs.

    ``alpha`` by role, ``shift`` of alpha and ``ratio`` (participation) by network, ``start`` alpha
    by role at epoch 0, from which it goes to the last as exp(-epoch / 3); ``bound`` of
    participation by alpha gamma. Shares are of the layers of every training, first come first
    served.
    """
    middle = {"conv": 2.0, "pointwise_conv": 2.0, "depthwise_conv": 1.4, "head": 3.0, "linear": 1.0}
    middle |= dict.fromkeys(INNER, 1.0) | {"mlp_up": 0.8} | (alpha or {})
    begin = middle | {"conv": 1.5, "pointwise_conv": 1.5} | (start or {})
    early = {"resnet18": (0,), "vgg11": (0,)} if early is None else early
    layers = make_layers(models, seeds, named)
    tables = []
    for epoch in (LAST, *sorted({epoch for epochs in early.values() for epoch in epochs})):
        final = epoch == LAST
        those = [model for model, epochs in early.items() if epoch in epochs]
        rows = layers if final else layers[layers["model"].isin(those)]
        share = 0.0 if final else math.exp(-epoch / 3)
        values = {role: (1 - share) * middle[role] + share * begin[role] for role in middle}
        mean = rows["role"].map(values).fillna(1.0) + rows["model"].map(shift or {}).fillna(0.0)
        fits = fits_of(
            rows.assign(epoch=epoch, final=final),
            mean,
            transfer=transfer,
            lognormal=lognormal if final else start_lognormal,
            bounded=bounded,
            bound=bound,
            noise=noise,
        )
        fits["participation_ratio"] += rows["model"].map(ratio or {}).fillna(0.0)
        tables.append(fits)
    return pd.concat(tables, ignore_index=True)


def without_fit(exponents, layers):
    """The exponents but for some layers, and for the head of two classes: it has one direction."""
    lost = exponents["layer"].isin(layers)
    lost |= exponents["kind"].eq("head") & exponents["model"].eq("mlp_2")
    return exponents.assign(
        status=np.where(lost, "no fit", "fit"),
        reason=np.where(lost, "4 of 4 left", ""),
        n_used=np.where(lost, 4, exponents["n_used"]),
        **{name: exponents[name].mask(lost) for name in FITTED},
    )


def make_experiments(exponents, *, phi_a=None, phi_delta=None, without=(), experiments=EXPERIMENTS):
    """The networks of every experiment side by side, with planted |slopes| of the alignments.

    ``phi_a`` and ``phi_delta`` are their magnitudes by network; layers alternate in sign.
    """
    phi_a = {"vit_tiny": 0.1, "vit_no_norm": 0.8} | (phi_a or {})
    phi_delta = {"resnet18": 0.2, "resnet_half": 0.5, "resnet_no_skip": 0.9} | (phi_delta or {})
    tables = []
    for experiment, (over, variants) in experiments.items():
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


RUNGS = {"exact/kronecker": 0.0, "exact/kronecker_true": 0.3, "fisher/positions": 5.0}
"""Ratios of a ladder, and how much more slope and median they have than the first."""


def make_ladder(exponents, *, slope=0.05, chi=3.0, spread=0.0, scatter=0.0, rungs=RUNGS):
    """Both gaps to Kronecker, and rungs that no claim uses; true factors have 0.3 more slope.

    log10 of the median gap is log10 chi + spread |alpha - 2|, with log-normal ``scatter``;
    ``slope`` is of every layer. A language model has no true factors.
    """
    last = exponents[exponents["final"]].reset_index(drop=True)
    median = chi * 10 ** (spread * (last["alpha"] - 2).abs())
    median *= np.exp(noise_of(last, scatter, 19))
    tables = []
    for ratio, extra in rungs.items():
        lost = last["alpha"].isna() | (last["model"].eq("gpt2") & ("true" in ratio))
        values = (slope + extra + noise_of(last, 0.02, 6)).mask(lost)
        rows = last[LAYER].assign(ratio=ratio, median=(median + extra).mask(lost), slope=values)
        rows = rows.assign(slope_low=values - 0.1, slope_high=values + 0.1)
        tables.append(rows.assign(status=np.where(lost, "no fit", "fit"), reason=""))
    return pd.concat(tables, ignore_index=True)


def make_decomposition(exponents, *, identity=1e-13, kronecker=1e-12, r=0.97):
    """Parts of alpha, and gaps of the identities: the largest in the last layer, of both signs."""
    rows = exponents[exponents["final"]].reset_index(drop=True)
    last = rows.index == len(rows) - 1
    phi, chi = -0.2 + noise_of(rows, 0.1, 14), 0.3 + noise_of(rows, 0.1, 15)
    return rows.assign(
        beta=rows["alpha"] - phi - chi,
        phi=phi,
        chi=chi,
        phi_delta=phi / 2,
        phi_a=phi / 2,
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


def make_windows(exponents):
    """alpha in other windows of ranks; only the ``mlp`` has more directions than ``top_k``."""
    last = exponents[exponents["final"]].reset_index(drop=True)
    names = ("top5", "top10", "top_k", "full", "q1", "q2", "q3", "q4")
    tables = []
    for place, window in enumerate(names):
        rows = last if window != "full" else last[last["model"] == "mlp"]
        alpha = rows["alpha"] + noise_of(rows, 0.15 if place < 4 else 0.5, 16, place)
        tables.append(
            rows.assign(window=window, alpha=alpha, alpha_low=alpha - 0.4, alpha_high=alpha + 0.4)
        )
    return pd.concat(tables, ignore_index=True)


def make_weights(exponents, *, decay=-0.3, tail=2.0):
    """The weights' exponents minus s, by the author's definition and, but for heads, of density."""
    rows = exponents[exponents["final"]].reset_index(drop=True)
    density = (rows["s"] + tail + noise_of(rows, 0.05, 10)).mask(rows["role"] == "head")
    return rows[LAYER].assign(
        decay=rows["s"] + decay + noise_of(rows, 0.05, 9),
        tail_exponent=density,
        status=np.where(density.isna(), "no fit", "fit"),
    )


def make_factor_models(exponents, *, delta=0.75, a=1.0):
    """Share of the layers, first come first served, whose factor has the gradient's rank model."""
    rows = exponents[exponents["final"] & exponents["model"].isin(MAIN)].reset_index(drop=True)
    share = (np.arange(len(rows)) + 0.5) / len(rows)
    tables = []
    for place, (factor, wanted) in enumerate((("delta", delta), ("a", a))):
        rank = (64, 576)[place] ** (0.3 + 0.1 * place) * np.exp(noise_of(rows, 0.2, 18, place))
        tables.append(rows.assign(factor=factor, same=share <= wanted, participation_rank=rank))
        tables[-1]["rank_model"] = rows["rank_model"].where(share <= wanted, "exponential")
        tables[-1]["gradient_rank_model"] = rows["rank_model"]
    return pd.concat(tables, ignore_index=True)


def make_finite_differences(
    *, models=("mlp", "resnet18"), seeds=4, named=None, negative=0.5, noise=3.0
):
    """h = sigma^2, and finite differences with log-normal noise, a share of them negative."""
    index = pd.DataFrame({"index": np.arange(1, TOP_K + 1)})
    rows = make_layers(models, seeds, named).merge(index, how="cross")
    h = (rows["index"] ** -GAMMA) ** 2
    sign = np.where(rows["index"] % 10 < 10 * negative, -1, 1)
    return rows.assign(
        singular_value=rows["index"] ** -GAMMA,
        directional_curvature=h,
        finite_difference=sign * h * np.exp(noise_of(rows, noise, 11)),
        step=1e-3,
    )


def make_spectra(exponents, *, kronecker=2.0, noise=0.1, drop=2.0, rho=0.5, surplus=0, n=24):
    """Curvature sigma^alpha, negative at the end of each fifth layer; Kronecker sigma^kronecker.

    Alignments are ``rho`` up to k = c and 10^-drop times it beyond, c the number of classes of the
    networks ``mlp_<c>``. Their heads have c - 1 + surplus directions. No claim may use directions
    beyond the twentieth (in fits), untrained networks and halves of the batch.
    """
    layers = exponents[exponents["model"].isin([*MAIN, *EXPERIMENTS["classes"][1]])]
    name = layers["model"].str.removeprefix("mlp_")
    layers = layers.assign(classes=name.where(name.str.isdigit(), "10").astype(int))
    most = np.where(layers["role"] == "head", layers["classes"] - 1 + surplus, n).clip(max=n)
    layers["most"] = np.where(layers["status"] == "fit", most, most.clip(max=4))
    columns = [*LAYER, "epoch", "final", "alpha", "classes", "most"]
    rows = layers[columns].merge(pd.DataFrame({"index": np.arange(1, n + 1)}), how="cross")
    rows = rows[rows["index"] <= rows["most"]].reset_index(drop=True)
    sigma = rows["index"] ** -GAMMA
    negative = (rows["layer_index"] % 5 == 3) & (rows["index"] > rows["most"] - 2)
    curvature = np.where(rows["index"] <= TOP_K, sigma**kronecker, 1e6)
    curvature *= np.exp(noise_of(rows, noise, 12))
    whole = rows.assign(
        part="whole",
        singular_value=sigma,
        directional_curvature=sigma ** rows["alpha"].fillna(1.0) * np.where(negative, -1, 1),
        n_below_rank=0,
        n_samples=256,
        kronecker=np.where(rows["final"], curvature, 1.0 / curvature),
        kronecker_true=np.where(rows["model"] == "gpt2", np.nan, curvature),
        rho_delta=rho * np.where(rows["index"] > rows["classes"], 10.0**-drop, 1.0),
    )
    halves = whole[whole["final"]].assign(part="first", kronecker=1.0, rho_delta=1e-9)
    return pd.concat([whole, halves], ignore_index=True).drop(columns=["classes", "most", "alpha"])


def make_eigenvalues(spectra, models=("mlp", "resnet18")):
    """Eigenvalues larger than the three leading curvatures of final layers."""
    rows = spectra[spectra["model"].isin(models) & spectra["final"] & (spectra["part"] == "whole")]
    rows = rows[rows["index"] <= 3].reset_index(drop=True)
    h = rows["directional_curvature"].abs()
    share = np.random.default_rng(0).uniform(0.2, 0.98, len(rows))
    return rows.assign(directional_curvature=h, eigenvalue=h / share, overlap=0.5)


def make_curvature(*, exponents=None, experiments=None, ladder=None, spectra=None):
    """Every curvature table of a world in which all claims hold; settings by table."""
    fits = make_exponents(
        **{"shift": {"gpt_classes": 0.8}, "ratio": {"mlp_w512": 0.7}, "lognormal": 0.8}
        | (exponents or {})
    )
    return {
        "exponents": fits,
        "experiments": make_experiments(fits, **(experiments or {})),
        "ladder": make_ladder(fits, **{"spread": 1.0} | (ladder or {})),
        "decomposition": make_decomposition(fits),
        "independence": make_independence(fits),
        "weights": make_weights(fits),
        "factor_models": make_factor_models(fits),
        "finite_differences": make_finite_differences(),
        "spectra": make_spectra(fits, **{"surplus": 6} | (spectra or {})),
    }
