"""Synthetic tables with the columns and the look of the real ones."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from scipy.special import zeta

from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.plotting.curvature.panels import LAYER
from spectral_laws.plotting.style import house_style
from spectral_laws.tables.schemas import load_schema

# features, degree, dimensions, gamma, readout, width (None: floor of sqrt d), exponents of n
STUDIES = {
    "quadratic": ("hermite", 2, (25, 36, 49, 64), 0.4, "identity", None, (1.6, 3.2, 11)),
    "quadratic_tanh": ("hermite", 2, (49,), 0.4, "tanh", None, (1.6, 3.2, 11)),
    "quadratic_relu": ("hermite", 2, (49,), 0.4, "relu", None, (1.6, 3.2, 11)),
    **{
        f"gamma_{round(10 * gamma):02d}": (
            "hermite", 2, (36,), gamma, "identity", None, (1.6, 3.4, 10),
        )
        for gamma in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    },
    "equivalent": ("equivalent", 2, (50, 100, 200), 0.4, "identity", None, (2.1, 3.0, 10)),
    "equivalent_tanh": ("equivalent", 2, (100,), 0.4, "tanh", None, (2.1, 3.0, 10)),
    "equivalent_relu": ("equivalent", 2, (100,), 0.4, "relu", None, (2.1, 3.0, 10)),
    "wide": ("equivalent", 2, (45, 64, 90), 0.4, "identity", 100, (2.2, 3.4, 9)),
    "steep": ("equivalent", 2, (64,), 1.0, "identity", 30, (2.0, 3.4, 12)),
    "smoothing": ("hermite", 1, (25, 50, 100, 200, 400), 0.4, "identity", 4, (0.8, 2.2, 22)),
    "depth_linear": (
        "hermite", 1, (16, 25, 36, 50, 72, 100), 0.4, "identity", 3, (0.8, 2.3, 16),
    ),
    "depth_quadratic": (
        "hermite", 2, (6, 8, 10, 12, 14, 16), 0.4, "identity", 3, (1.2, 3.6, 13),
    ),
}  # fmt: skip
LAYERS = ("same_sample", "independent", "outliers")
METHODS = ("polynomial", "arc_cosine", "rbf", "random_features", "network")
RESNET = [
    "conv1",
    *(
        f"layer{stage}.{block}.{part}"
        for stage in range(1, 5)
        for block in range(2)
        for part in ("conv1", "conv2", "downsample.0")
        if part != "downsample.0" or (stage > 1 and block == 0)
    ),
    "fc",
]
BLOCK = {
    "attn.qkv": "attention_qkv",
    "attn.proj": "attention_output",
    "mlp.up": "mlp_up",
    "mlp.down": "mlp_down",
}


def roles_of_resnet(normal="conv"):
    roles = {name: "pointwise_conv" if "downsample" in name else normal for name in RESNET}
    return roles | {"conv1": "conv", "fc": "head"}


def roles_of_transformer(blocks, first=()):
    roles = dict(first)
    roles |= {f"blocks.{i}.{name}": role for i in range(blocks) for name, role in BLOCK.items()}
    return roles | {"head": "head"}


def roles_of_mlp(depth):
    return {f"layers.{i}": "linear" for i in range(depth)} | {"head": "head"}


PATCHES = [("patch_embedding", "patch_embedding")]
# layer -> role
MODELS = {
    "resnet18": roles_of_resnet(),
    "vgg11": {f"features.{i}": "conv" for i in (0, 4, 8, 11, 15, 18, 22, 25)}
    | {"classifier.0": "linear", "classifier.3": "linear", "classifier.6": "head"},
    "mlp": roles_of_mlp(3),
    "gpt2": roles_of_transformer(6),
    "vit_tiny": roles_of_transformer(6, PATCHES),
}
MAIN = tuple(MODELS)
SHORT_RESNET = {
    name: role for name, role in roles_of_resnet().items() if name in ("conv1", "fc")
    or name.startswith("layer2")
}  # fmt: skip
SEPARABLE = SHORT_RESNET | {"layer2.0.conv1": "depthwise_conv", "layer2.0.conv2": "pointwise_conv"}
# experiment -> attribute, and the layers of each variant
EXPERIMENTS = {
    "layer_norm": ("normalisation", dict.fromkeys(("layer", "none"), roles_of_transformer(2))),
    "residual": ("skip_scale", dict.fromkeys((0.0, 0.5, 1.0), SHORT_RESNET)),
    "classes": ("n_classes", dict.fromkeys((2, 10, 100, 1000), roles_of_mlp(2))),
    "outputs": ("n_classes", dict.fromkeys((10, 100), roles_of_transformer(2, PATCHES))),
    "task": (
        "task", dict.fromkeys(("language_modelling", "classification"), roles_of_transformer(2)),
    ),
    "width": ("width", dict.fromkeys((64, 128, 256, 512), roles_of_mlp(2))),
    "depth": ("depth", {depth: roles_of_mlp(depth) for depth in (2, 4, 8)}),
    "batch_norm": ("normalisation", dict.fromkeys(("batch", "none"), SHORT_RESNET)),
    "separable": ("separable", {False: SHORT_RESNET, True: SEPARABLE}),
}  # fmt: skip
ALPHAS = {
    "conv": 2.0,
    "depthwise_conv": 1.7,
    "pointwise_conv": 1.9,
    "linear": 1.6,
    "patch_embedding": 1.5,
    "attention_qkv": 1.25,
    "attention_output": 1.1,
    "mlp_up": 0.85,
    "mlp_down": 1.05,
    "head": 2.6,
}
EPOCHS = (0, 1, 3, 6, 12)
LAWS = ("power_law", "exponential", "lognormal")
TOP_K = 20

FITTED = [
    *(
        f"{slope}{end}"
        for slope in ("alpha", "gamma", "s")
        for end in ("", "_low", "_high", "_stderr", "_r2")
    ),
    "transfer_error",
    "participation_ratio",
    "participation_bound",
    "rank_model",
    *(f"bic_{law}" for law in LAWS),
]


def strengths(width, gamma):
    weights = np.arange(1, width + 1) ** -float(gamma)
    return weights / np.linalg.norm(weights)


def smooth_overlaps(samples_per_feature, weights):
    ratio = samples_per_feature * weights**2 / 1.5
    return 1 / (1 + np.exp(-2.5 * np.log(np.maximum(ratio, 1e-9))))


def crossing(grid, curve):
    above = np.flatnonzero(np.array(curve) >= 0.5)
    if above.size == 0:
        return None, "above"
    if above[0] == 0:
        return None, "below"
    ends = slice(above[0] - 1, above[0] + 1)
    return float(np.exp(np.interp(0.5, curve[ends], np.log(grid[ends])))), "no"


def recovery_jobs(studies, seeds):
    for study in studies:
        features, degree, dimensions, gamma, readout, width, (start, stop, count) = STUDIES[study]
        for dimension in dimensions:
            size = math.comb(dimension + degree - 1, degree)
            weights = strengths(width or math.floor(dimension**0.5 + 1e-9), gamma)
            grid = [round(dimension**a) for a in np.linspace(start, stop, count)]
            for seed in range(seeds):
                head = {
                    "study": study,
                    "features": features,
                    "degree": degree,
                    "dimension": dimension,
                    "feature_dimension": size,
                    "n_directions": weights.size,
                    "gamma": gamma,
                    "readout": readout,
                    "noise": 0.0,
                    "seed": seed,
                }
                generator = np.random.default_rng([degree, dimension, seed, round(10 * gamma)])
                yield head, weights, grid, generator


def one_recovery(head, weights, grid, generator):
    """Rows of the metrics, directions and thresholds of one teacher."""
    size, metrics, directions, thresholds, curves = head["feature_dimension"], [], [], [], []
    loss = 3.0 / head["dimension"] if head["features"] == "hermite" else 0.0
    for n in grid:
        predicted = smooth_overlaps(n / size, weights)
        noise = 0.02 * generator.standard_normal(weights.size)
        cos2 = np.clip(predicted * (1 - loss) + noise * (1 - predicted), 1e-4, 1 - 1e-4)
        curves.append((cos2, predicted))
        errors = [float(np.sum(weights**2 * (1 - c**2)) + 0.003) for c in (cos2, predicted)]
        extra = dict(zip(LAYERS, (0.6 / (1 + n / size / 3), 0.0, 0.02), strict=True))
        recovered = int((n >= size / weights**2).sum())
        metrics += [
            head
            | {
                "sample_size": n,
                "second_layer": layer,
                "mse": errors[0] + extra[layer],
                "predicted_mse": errors[1] + extra[layer],
                "feature_overlap": cos2.mean(),
                "predicted_overlap": predicted.mean(),
                "n_recovered": int((cos2 >= 0.5).sum()),
                "n_outliers": int((cos2 >= 0.4).sum()),
                "n_spurious": 0,
                "tail_mse": float((weights[recovered:] ** 2).sum()),
                "edge_low": -1.0,
                "edge_high": 1.5,
                "iterations": 20,
                "residual": 5e-5,
            }
            for layer in LAYERS
        ]
        directions += [
            head
            | {
                "sample_size": n,
                "direction": i + 1,
                "weight": weights[i] * (-1) ** i,
                "cos2": cos2[i],
                "predicted_cos2": predicted[i],
                "matched_overlap": math.sqrt(cos2[i]),
                "eigenvalue": weights[i],
                "localisation": 0.01,
                "threshold": size / weights[i] ** 2,
            }
            for i in range(weights.size)
        ]
    for i in range(weights.size):
        half, censored = crossing(grid, [cos2[i] for cos2, _ in curves])
        predicted, _ = crossing(grid, [predicted[i] for _, predicted in curves])
        thresholds.append(
            head
            | {
                "direction": i + 1,
                "weight": weights[i] * (-1) ** i,
                "threshold": size / weights[i] ** 2,
                "half_recovery": half,
                "censored": censored,
                "predicted_half_recovery": predicted,
            }
        )
    return metrics, directions, thresholds


@pytest.fixture(scope="session")
def make_recovery():
    """(studies, seeds) -> metrics, directions, thresholds."""

    def make(studies=tuple(STUDIES), seeds=5):
        tables = [], [], []
        for job in recovery_jobs(studies, seeds):
            for rows, new in zip(tables, one_recovery(*job), strict=True):
                rows += new
        halves = ["half_recovery", "predicted_half_recovery"]
        metrics, directions, thresholds = (pd.DataFrame(rows) for rows in tables)
        return metrics, directions, thresholds.astype(dict.fromkeys(halves, "float64"))

    return make


@pytest.fixture(scope="session")
def make_baselines():
    """(studies, seeds) -> baselines table; the polynomial kernel needs 0.1 d^(2q) samples."""

    def make(studies=("depth_linear", "depth_quadratic"), seeds=5):
        rows = []
        for head, _, grid, generator in recovery_jobs(studies, seeds):
            need = 0.1 * head["dimension"] ** (2 * head["degree"])
            for n in grid:
                for rank, method in enumerate(METHODS):
                    noise = math.exp(0.05 * generator.standard_normal())
                    error = noise / (1 + (n / need / 1.4**rank) ** 2)
                    kernel = method not in ("network",)
                    rows.append(
                        head
                        | {
                            "sample_size": n,
                            "method": method,
                            "ridge": 0.1 if kernel else None,
                            "selection_error": error,
                            "mse": error,
                        }
                    )
        return pd.DataFrame([row for row in rows if row["sample_size"] <= 4100])

    return make


@pytest.fixture(scope="session")
def make_perturbation():
    """(seeds) -> perturbation table: error 2 (norm/gap)^2, norm 2 sqrt(D/n), bound 3 k too big."""

    def make(seeds=4):
        rows = []
        studies = {
            "linear": (1, (40, 60, 80), 4, (1.9, 3.1, 9)),
            "linear_wide": (1, (40,), 8, (3.0, 3.8, 5)),
            "quadratic": (2, (10, 12, 14), 2, (3.4, 5.2, 6)),
        }
        for study, (degree, dimensions, width, (start, stop, count)) in studies.items():
            for dimension, seed in itertools.product(dimensions, range(seeds)):
                generator = np.random.default_rng([degree, dimension, seed, width])
                size = math.comb(dimension + degree - 1, degree)
                weights = strengths(width, 1.0)
                gaps = math.sqrt(2) * np.abs(np.diff(weights, append=0.3 * weights[-1]))
                for n in [round(dimension**a) for a in np.linspace(start, stop, count)]:
                    norm = 2 * math.sqrt(size / n) * math.exp(0.05 * generator.standard_normal())
                    for i in range(width):
                        bound = norm / gaps[i]
                        sine = min(bound / (3 * (i + 1)), 0.99)
                        rows.append(
                            {
                                "study": study,
                                "features": "hermite",
                                "degree": degree,
                                "dimension": dimension,
                                "feature_dimension": size,
                                "n_directions": width,
                                "gamma": 1.0,
                                "readout": "identity",
                                "noise": 0.0,
                                "seed": seed,
                                "sample_size": n,
                                "direction": i + 1,
                                "weight": weights[i],
                                "eigenvalue": math.sqrt(2) * weights[i],
                                "operator_norm": norm,
                                "gap": gaps[i],
                                "sin_theta": sine,
                                "first_order_sin": sine * 0.98,
                                "expansion_error": 2 * bound**2 / 9,
                                "davis_kahan": bound,
                                "resolved": bound < 0.5,
                            }
                        )
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def make_population():
    """(seeds) -> population table with 1 - cos^2 = tilt, and weak directions hidden at small d."""

    def make(seeds=5, dimensions=(16, 25, 36, 49, 64, 100, 144)):
        rows = []
        for dimension, seed in itertools.product(dimensions, range(seeds)):
            generator = np.random.default_rng([dimension, seed])
            weights = strengths(math.isqrt(dimension), 0.4)
            for i, weight in enumerate(weights):
                tilt = 12 * (1 + 2 * weight**2) / (dimension * weight) ** 2
                loss = min(tilt * math.exp(0.1 * generator.standard_normal()), 0.95)
                if i % 2 and dimension * weight < 12:
                    loss = 0.9
                rows.append(
                    {
                        "dimension": dimension,
                        "feature_dimension": math.comb(dimension + 1, 2),
                        "n_directions": weights.size,
                        "gamma": 0.4,
                        "seed": seed,
                        "direction": i + 1,
                        "weight": weight * (-1) ** i,
                        "cos2": 1 - loss,
                        "eigenvalue": weight,
                        "signal": weight,
                        "bulk_scale": 1 / dimension,
                        "tilt": tilt,
                    }
                )
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def make_error_exponents():
    """() -> exponents that approach the asymptotic law as 1 / log d1."""

    def make(gammas=(0.2, 0.4, 0.6, 0.8, 1.0, 1.5), widths=(30, 100, 300, 1000), seeds=2):
        shifts = {"tail": -0.2, "independent": -0.22, "outliers": -0.1, "same_sample": 0.4}
        return pd.DataFrame(
            [
                {
                    "gamma": gamma,
                    "n_directions": width,
                    "seed": seed,
                    "first": 3,
                    "last": round(0.2 * width),
                    "second_layer": layer,
                    "exponent": -1 + 1 / (2 * gamma) + (shift + 0.01 * seed) / math.log(width),
                }
                for gamma, width, seed, (layer, shift) in itertools.product(
                    gammas, widths, range(seeds), shifts.items()
                )
            ]
        )

    return make


@pytest.fixture(scope="session")
def make_spectrum():
    """(seeds, outliers, quadrature) -> spectrum table."""

    def make(seeds=1, outliers=True, quadrature=False):
        size, n = 1485, 349_000
        tables = []
        for seed in range(seeds):
            generator = np.random.default_rng(seed)
            edge = 2 * math.sqrt(size / n)
            values = edge * (2 * generator.beta(1.5, 1.5, size - 7) - 1)
            spikes = np.array([-0.75, 0.62, 0.53, -0.47, 0.41, 0.36, -0.33])
            values = np.concatenate([values, spikes if outliers else spikes / 1e3])
            mass = np.full(size, 1 / size)
            if quadrature:
                values = np.concatenate([np.linspace(-0.99 * edge, 0.99 * edge, 90), spikes])
                mass = np.concatenate([np.full(90, (1 - 7 / size) / 90), np.full(7, 1 / size)])
            inside = np.sqrt(np.maximum(edge**2 - values**2, 0))
            semicircle = 2 * inside / (math.pi * edge**2)
            tables.append(
                pd.DataFrame(
                    {
                        "study": "quadratic",
                        "features": "hermite",
                        "degree": 2,
                        "dimension": 54,
                        "feature_dimension": size,
                        "n_directions": 7,
                        "gamma": 0.4,
                        "readout": "identity",
                        "noise": 0.0,
                        "seed": seed,
                        "sample_size": n,
                        "eigenvalue": np.sort(values),
                        "mass": mass[np.argsort(values)],
                        "density": semicircle[np.argsort(values)],
                        "edge_low": -edge,
                        "edge_high": edge,
                    }
                )
            )
        return pd.concat(tables, ignore_index=True)

    return make


def slopes_of(sigma, curvature, k):
    """alpha, gamma and s by numpy's own least squares."""
    logs = np.log(sigma), np.log(curvature), np.log(k)
    return {
        "alpha": np.polyfit(logs[0], logs[1], 1)[0],
        "gamma": -np.polyfit(logs[2], logs[0], 1)[0],
        "s": -np.polyfit(logs[2], logs[1], 1)[0],
    }


def bic_of(sigma, k):
    designs = {
        "power_law": np.column_stack([np.ones(k.size), np.log(k)]),
        "exponential": np.column_stack([np.ones(k.size), k]),
        "lognormal": np.column_stack([np.ones(k.size), np.log(k), np.log(k) ** 2]),
    }
    bic = {}
    for name, design in designs.items():
        residuals = np.log(sigma) - design @ np.linalg.lstsq(design, np.log(sigma), rcond=None)[0]
        bic[f"bic_{name}"] = k.size * np.log(residuals @ residuals / k.size) + np.log(k.size) * len(
            design.T
        )
    return bic


def layer_tables(model, layer, role, index, seed, *, epoch=12, n_classes=10, shift=0.0):
    """Spectra and the exponents' row of one layer of one training."""
    generator = np.random.default_rng([index, seed, epoch, *model.encode()])
    kind = "head" if role == "head" else "conv" if role.endswith("conv") else "linear"
    alpha = ALPHAS[role] + shift + 0.15 * generator.standard_normal()
    count = min(n_classes - 1, 40) if kind == "head" else TOP_K
    k = np.arange(1, count + 1)
    scatter = generator.standard_normal((8, count))
    bend = generator.uniform(-0.2, 0.2) * np.log(k) ** 2
    sigma = 0.05 * k ** -(0.9 + 0.3 * generator.random()) * np.exp(0.1 * scatter[0] - bend)
    sigma = np.sort(sigma)[::-1]
    curvature = 30 * sigma**alpha * np.exp(0.3 * scatter[1])
    if index % 5 == 3:
        curvature[-2:] *= -1
    kronecker = 9 * sigma**1.8 * np.exp(0.3 * scatter[2])
    head = {
        "model": model,
        "architecture": model.split("_")[0],
        "seed": seed,
        "epoch": epoch,
        "final": epoch == EPOCHS[-1],
        "layer_index": index,
        "layer": layer,
        "kind": kind,
        "role": role,
    }
    spectra = pd.DataFrame(
        {
            **head,
            "part": "whole",
            "n_rows": 64,
            "n_columns": 576,
            "index": k,
            "singular_value": sigma,
            "directional_curvature": curvature,
            "method": "gauss_newton",
            "n_samples": 256,
            "train_loss": 0.01,
            "n_below_rank": 0,
            "kronecker": kronecker,
            "rho_delta": 0.8 * k**-0.3 * np.exp(0.1 * scatter[3]),
        }
    )
    good = curvature > 0
    row = head | {
        "n_directions": count,
        "n_used": int(good.sum()),
        "n_nonpositive": int((~good).sum()),
        "n_below_rank": 0,
        "status": "fit",
        "reason": "",
    }
    if good.sum() < 5:
        return spectra, row | dict.fromkeys(FITTED) | {"status": "no fit", "reason": "too few"}
    for name, value in slopes_of(sigma[good], curvature[good], k[good]).items():
        row |= {name: value, f"{name}_low": value - 0.2, f"{name}_high": value + 0.25}
        row |= {f"{name}_stderr": 0.1, f"{name}_r2": 0.9}
    row["transfer_error"] = abs(row["s"] - row["alpha"] * row["gamma"]) / abs(row["s"])
    product, h = row["alpha"] * row["gamma"], curvature[good]
    row["participation_ratio"] = h.sum() ** 2 / (h @ h)
    row["participation_bound"] = zeta(product) ** 2 / zeta(2 * product) if product > 1 else None
    bic = bic_of(sigma, k)
    return spectra, row | bic | {"rank_model": min(bic, key=bic.get).removeprefix("bic_")}


def networks_of(models, experiments):
    """(experiment, over, variant, value, model, layers) of every network."""
    for model in models:
        yield "architectures", "architecture", model, None, model, MODELS[model]
    for name in experiments:
        over, variants = EXPERIMENTS[name]
        for variant, layers in variants.items():
            value = None
            if isinstance(variant, int | float) and not isinstance(variant, bool):
                value = float(variant)
            text = str(variant).lower() if value is None else f"{value:g}"
            yield name, over, text, value, f"{name}_{text}", layers


def fit_tables(spectra, exponents):
    """Ladder, decomposition, independence, windows, weights and factor_models of final layers."""
    tables = {name: [] for name in (
        "ladder", "decomposition", "independence", "windows", "weights", "factor_models"
    )}  # fmt: skip
    layers = exponents[exponents["final"]].reset_index(drop=True)
    for number, row in layers.iterrows():
        generator = np.random.default_rng(number)
        head = {name: row[name] for name in LAYER}
        status = {"status": row["status"], "reason": row["reason"]}
        fit = row["status"] == "fit"
        noise = generator.standard_normal(20)
        gaps = {"exact/gauss_newton": 0.0, "gauss_newton/fisher": 0.3, "fisher/positions": 1.0,
                "positions/kronecker": 0.5}  # fmt: skip
        if row["kind"] != "conv":
            gaps["fisher/positions"] = 0.1
        gaps = {name: gap + 0.2 * noise[i] * (i > 0) for i, (name, gap) in enumerate(gaps.items())}
        gaps["exact/kronecker"] = sum(gaps.values())
        gaps["gauss_newton/positions_true"] = gaps["fisher/positions"]
        gaps["positions_true/kronecker_true"] = gaps["positions/kronecker"]
        gaps["exact/kronecker_true"] = gaps["fisher/positions"] + gaps["positions/kronecker"]
        for i, (ratio, gap) in enumerate(gaps.items()):
            told = fit and not (row["model"] == "gpt2" and "true" in ratio)
            slope = 0.3 * gap + 0.1 * noise[i + 5] * (i > 0)
            numbers = {"median": np.exp(gap), "slope": slope, "slope_low": slope - 0.2,
                       "slope_high": slope + 0.2, "slope_r2": 0.5}  # fmt: skip
            tables["ladder"].append(
                head | {"ratio": ratio, "n_used": 20 * told, "n_dropped": 0}
                | (numbers if told else dict.fromkeys(numbers))
                | {"status": "fit" if told else "no fit", "reason": "" if told else "missing"}
            )  # fmt: skip
        alpha = row["alpha"] if fit else np.nan
        phi, chi = -0.2 + 0.1 * noise[0], 0.3 + 0.1 * noise[1]
        parts = {"alpha": alpha, "beta": alpha - phi - chi, "phi": phi, "chi": chi,
                 "phi_delta": phi / 2, "phi_a": phi / 2,
                 "identity_gap": 1e-13 * noise[2], "kronecker_gap": 1e-12}  # fmt: skip
        tables["decomposition"].append(
            head | {"n_used": row["n_used"]} | (parts if fit else dict.fromkeys(parts)) | status
        )
        error = row["transfer_error"] if fit else np.nan
        errors = {"error_same": error, "error_halves": 1.5 * error, "error_repeat": 1.6 * error,
                  "error_permuted": 0.6 * np.exp(0.3 * noise[3]),
                  "error_free": error * np.exp(0.5 * noise[4])}  # fmt: skip
        tables["independence"].append(head | (errors if fit else dict.fromkeys(errors)) | status)
        for i, window in enumerate(("top5", "top10", "top_k", "full", "q1", "q2", "q3", "q4")):
            if window == "full" and row["model"] != "mlp":
                continue
            value = alpha + (0.15 if i in (0, 1, 2, 3) else 0.5) * noise[i + 5]
            numbers = {"alpha": value, "alpha_low": value - 0.4, "alpha_high": value + 0.4}
            tables["windows"].append(
                head | {"window": window, "first": 1, "last": 5, "n_used": 5}
                | (numbers if fit else dict.fromkeys(numbers)) | status
            )  # fmt: skip
        tail = row["kind"] != "head"
        tables["weights"].append(
            head
            | {
                "decay": 0.4 + 0.1 * noise[14],
                "tail_exponent": 2.5 + 0.5 * noise[15] if tail else None,
                "tail_sigma": 0.3 if tail else None,
                "ks": 0.1,
                "status": "fit" if tail else "no fit",
                "reason": "" if tail else "9 eigenvalues",
            }
        )
        for i, (factor, size) in enumerate((("delta", 64), ("a", 576))):
            law = LAWS[generator.integers(3)]
            tables["factor_models"].append(
                head
                | {
                    "factor": factor,
                    "rank_model": law,
                    "gradient_rank_model": row["rank_model"],
                    "same": law == row["rank_model"] if fit else None,
                    "participation_rank": size ** (0.3 + 0.1 * i) * np.exp(0.2 * noise[16 + i]),
                    "entropy_rank": size**0.5,
                    "size": size,
                }
            )
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def control_tables(spectra):
    """Finite differences and eigenvalues of two networks."""
    rows = spectra[
        spectra["model"].isin(["resnet18", "mlp"]) & (spectra["seed"] < 2) & spectra["final"]
        & (spectra["part"] == "whole")
    ].reset_index(drop=True)  # fmt: skip
    generator = np.random.default_rng(0)
    exact = rows["directional_curvature"]
    noise = generator.standard_normal(len(rows)) * np.exp(generator.standard_normal(len(rows)))
    differences = rows[[*LAYER, "index", "singular_value", "directional_curvature"]].assign(
        finite_difference=exact + 0.02 * exact.abs().median() * noise + 0.2 * exact * noise,
        step=1e-3,
    )
    leading = rows[rows["index"] <= 3].reset_index(drop=True)
    h = leading["directional_curvature"].abs()
    eigenvalues = leading[[*LAYER, "index"]].assign(
        directional_curvature=h, eigenvalue=h / generator.uniform(0.2, 0.98, len(h)), overlap=0.5
    )
    return {"finite_differences": differences, "eigenvalues": eigenvalues}


@pytest.fixture(scope="session")
def make_curvature():
    """(seeds, no_fit, experiments, models) -> tables by name; no_fit names layers."""

    def make(seeds=3, no_fit=(), experiments=tuple(EXPERIMENTS), models=MAIN):
        spectra, exponents, compared = [], [], []
        for name, over, variant, value, model, layers in networks_of(models, experiments):
            classes = int(value) if over == "n_classes" else 10
            shift = -0.3 if variant in ("layer", "language_modelling", "100") else 0.0
            epochs = EPOCHS if model == "resnet18" else EPOCHS[-1:]
            for seed, epoch, (index, layer) in itertools.product(
                range(seeds), epochs, enumerate(layers)
            ):
                table, row = layer_tables(
                    model, layer, layers[layer], index, seed, epoch=epoch, n_classes=classes,
                    shift=shift - 0.4 * math.exp(-epoch / 3),
                )  # fmt: skip
                if layer in no_fit:
                    table = table.head(4)
                    row |= dict.fromkeys(FITTED)
                    row |= {"status": "no fit", "reason": "4 of 4 left", "n_used": 4}
                    row |= {"n_directions": 4, "n_nonpositive": 0}
                spectra.append(table)
                exponents.append(row)
                phi = {} if row["status"] != "fit" else {
                    "phi_a": -0.1 - shift + 0.1 * math.sin(index),
                    "phi_delta": -0.2 + 0.2 * (value or 0) + 0.1 * math.cos(index + seed),
                }  # fmt: skip
                compared.append(
                    {"experiment": name, "over": over, "variant": variant, "value": value}
                    | row
                    | {"phi_a": None, "phi_delta": None}
                    | phi
                )
        halves = [spectra[0].assign(part="first"), spectra[0].assign(part="second")]
        tables = {
            "spectra": pd.concat([*spectra, *halves], ignore_index=True),
            "exponents": pd.DataFrame(exponents).astype(
                {name: "float64" for name in FITTED if name != "rank_model"}
            ),
            "experiments": pd.DataFrame(compared),
        }
        numbers = ("alpha", "phi_a", "phi_delta", "participation_ratio", "value")
        tables["experiments"] = tables["experiments"].astype(dict.fromkeys(numbers, "float64"))
        tables |= fit_tables(tables["spectra"], tables["exponents"])
        tables |= control_tables(tables["spectra"])
        # Columns that no figure shows are missing values.
        return {name: load_schema(f"curvature/{name}").frame(rows) for name, rows in tables.items()}

    return make


RATES = {"none": 0.0, "b = 0.5": 0.5, "b = 1": 1.0, "inverse": -1.0, "random": math.nan}
"""Variants of the learning rates per layer and their exponents."""
# race -> model, whether it is of a language model, test samples or tokens, epochs
RACES = {
    "images": ("resnet18", False, 500, 8),
    "text": ("gpt2", True, 2560, 5),
    "digits": ("mlp", False, 400, 12),
}
# method -> where it ends (points, nats), seconds per epoch, learning rates
OPTIMIZERS = {
    "sgd": (1.0, 0.05, 1.0, (0.03, 0.1, 0.3)),
    "adamw": (0.0, 0.0, 1.1, (1e-3, 3e-3, 1e-2)),
    "muon": (1.6, -0.08, 2.3, (1e-3, 3e-3, 1e-2)),
    "soap": (1.1, -0.06, 6.0, (1e-3, 3e-3, 1e-2)),
    "spectral_newton_1": (1.4, -0.07, 1.7, (1e-3, 3e-3, 1e-2)),
    "spectral_newton_2": (0.6, 0.02, 1.5, (1e-3, 3e-3, 1e-2)),
    "spectral_newton_measured": (0.9, 0.0, 1.8, (1e-3, 3e-3, 1e-2)),
    "sgd_by_damping": (-9.0, 0.6, 1.0, (0.01, 0.03, 0.1)),
}


def rates_table(races, seeds):
    """Whole test samples gained or lost by learning rates per layer."""
    rows = []
    for place, race in enumerate(races):
        model, _, n_test, _ = RACES[race]
        for seed in range(seeds):
            generator = np.random.default_rng([place, seed])
            for variant, exponent in RATES.items():
                lost = 9 * place + generator.integers(-3, 4) + 4 * (variant == "inverse")
                rows.append(
                    {
                        "race": race,
                        "model": model,
                        "seed": seed,
                        "variant": variant,
                        "exponent": exponent,
                        "n_scaled": 0 if variant == "none" else 4 + 2 * place,
                        "test_loss": 0.2 + 0.01 * lost,
                        "test_accuracy": (0.9 * n_test - lost) / n_test,
                        "diverged": False,
                        "n_test": n_test,
                    }
                )
    return pd.DataFrame(rows)


def race_tables(races, methods, seeds):
    """Every epoch, its seconds, and the tuning of every method; nothing diverges but in tuning."""
    runs, times, tuning, tuning_times = [], [], [], []
    for race, method in itertools.product(races, methods):
        model, language, n_test, epochs = RACES[race]
        points, nats, seconds, rates = OPTIMIZERS[method]
        place = {"race": race, "method": method}
        task = "language_modelling" if language else "classification"
        for seed, epoch in itertools.product(range(seeds), range(1, epochs + 1)):
            generator = np.random.default_rng([seed, epoch, *race.encode(), *method.encode()])
            done = 1 - math.exp(-3 * epoch / epochs)
            accuracy = 0.1 + 0.6 * done + 0.01 * points * done + 0.006 * generator.standard_normal()
            loss = 5.6 - 2.2 * done + nats * done + 0.02 * generator.standard_normal()
            key = place | {"seed": seed, "epoch": epoch}
            runs.append(
                key
                | {
                    "task": task,
                    "model": model,
                    "train_size": 500,
                    "steps": 10 * epochs,
                    "learning_rate": rates[1],
                    "weight_decay": 0.0,
                    "train_loss": loss - 0.1,
                    "test_loss": loss if language else loss / 4,
                    "test_accuracy": round(accuracy * n_test) / n_test,
                    "diverged": False,
                    "n_test": n_test,
                }
            )
            times.append(key | {"seconds": seconds * math.exp(0.05 * generator.standard_normal())})
        best = sorted(methods).index(method) % len(rates)
        for i, decay in itertools.product(range(len(rates)), (0.0, 0.1)):
            pair = place | {"learning_rate": rates[i], "weight_decay": decay}
            lost = method == "sgd" and i == len(rates) - 1 and best != i
            tuning.append(
                pair
                | {
                    "validation_loss": None if lost else 1.0 + abs(i - best) + decay,
                    "validation_accuracy": 0.5,
                    "diverged": lost,
                    "trainings": 2,
                    "chosen": i == best and decay == 0,
                }
            )
            tuning_times.append(pair | {"seconds": seconds * epochs})
    return {
        "race": pd.DataFrame(runs),
        "race_times": pd.DataFrame(times),
        "tuning": pd.DataFrame(tuning).astype({"validation_loss": "float64"}),
        "tuning_times": pd.DataFrame(tuning_times),
    }


def update_spectrum(method, sigma, generator):
    """T(sigma / sigma_1) of a method up to its scale, and the share on the diagonal."""
    flat = {
        "sgd": (sigma, 1.0),
        "sgd_by_damping": (10 * sigma, 1.0),
        "muon": (generator.uniform(0.7, 1.15, sigma.size), 0.999),
        "soap": (0.6 + 0.3 * generator.standard_normal(sigma.size), 0.31),
        "adamw": (sigma**0.5 * (0.7 + generator.standard_normal(sigma.size)), 0.087),
    }
    if method in flat:
        return flat[method]
    alpha = {"spectral_newton_1": 1.0, "spectral_newton_2": 2.0}.get(method, 1.7)
    return 6.4 * sigma / (sigma**alpha + 0.1), 1.0


def responses_table(methods, sizes):
    rows = []
    for layer, size in sizes.items():
        sigma = np.arange(1, size + 1) ** -1.1
        for method in methods:
            generator = np.random.default_rng([size, *method.encode()])
            response, share = update_spectrum(method, sigma, generator)
            table = pd.DataFrame({"race": "images", "method": method, "layer": layer,
                                  "k": np.arange(1, size + 1)})  # fmt: skip
            rows.append(table.assign(sigma=0.032 * sigma, response=response, diagonal_share=share))
    return pd.concat(rows, ignore_index=True)


@pytest.fixture(scope="session")
def make_optimizers():
    """(seeds, races, methods) -> tables by name."""

    def make(seeds=5, races=("images", "text"), methods=tuple(OPTIMIZERS)):
        rated = [race for race in races if not RACES[race][1]]
        sizes = {"layer1.0.conv1": 16, "layer4.1.conv2": 128}
        return race_tables(races, methods, seeds) | {
            "layer_rates": rates_table(rated, seeds),
            "responses": responses_table(methods, sizes),
        }

    return make


@pytest.fixture(scope="session")
def audit_table():
    """Rows with and without the author's files, ours, and one quantity layer by layer."""
    rows = [
        {
            "quantity": quantity,
            "claim": claim,
            "source": source,
            "layer": layer,
            "paper_text": paper,
            "author_value": stored,
            "author_recomputed": again,
            "our_value": ours,
            "our_low": None if ours is None else ours - 0.2,
            "our_high": None if ours is None else ours + 0.3,
            "note": "",
        }
        for claim, quantity, source, layer, paper, stored, again, ours in (
            ("B1", "median alpha of convolutional layers", "gap.json", "", "1.97 to 2.17", 2.05,
             2.04, 1.91),
            ("B10", "median chi of convolutional layers, divided by b^2", "gap.json", "",
             "1e3 to 1e7", 4.1e5, 3.2, 1.8),
            ("B11", "median |s - alpha gamma| / |s|", "transfer.json", "", "1.6 %", 0.016, 0.016,
             0.03),
            ("B14", "accuracy of Spectral Newton minus AdamW", "none", "", "1.1 to 3.5", None,
             None, None),
            *(("", "stored alpha", "gap.json", f"layer{i}", "", 2 + 0.1 * i, 2 + 0.1 * i, None)
              for i in range(5)),
        )
    ]  # fmt: skip
    numbers = ("author_value", "author_recomputed", "our_value", "our_low", "our_high")
    return pd.DataFrame(rows).astype(dict.fromkeys(numbers, "float64"))


@pytest.fixture(scope="session")
def claims_table():
    """Measurements of all claims, with every verdict, rows beside them, and missing values."""
    rows = []
    for number, claim in enumerate(load_claims()):
        verdict = VERDICTS[number % 7]
        row = {"claim": claim.id, "role": "primary", "scope": "d = 36 to 50", "verdict": verdict}
        if verdict == "not run at this scale":
            rows.append(row | {"missing": "needs GPT-2"})
            continue
        value = 0.37 * number - 2
        row |= {"value": value, "n_units": 12 * number + 30, "units": "directions"}
        row |= {"n_clusters": 3 + number % 12, "clusters": ("teachers", "trainings")[number % 2]}
        if not claim.no_interval:
            row |= {"low": value - 0.12, "high": value + 0.12}
        if number % 5 == 4:
            row |= {"n_clusters": 12, "n_stratum": 3}
        other = {"role": "sensitivity", "scope": "true features", "verdict": ""}
        rows += [row, row | other]
    table = pd.DataFrame(rows).fillna({"missing": "", "units": "", "clusters": ""})
    return table.astype(dict.fromkeys(("n_units", "n_clusters", "n_stratum"), "Int64"))


def drawn_texts(figure):
    """Text -> bounding box in pixels, of all texts that are really on the page."""
    canvas = FigureCanvasAgg(figure)
    with house_style():
        canvas.draw()
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not axes.axison or not low <= tick.get_loc() <= high:
                    hidden |= {tick.label1, tick.label2}
    texts = [
        text
        for text in figure.findobj(Text)
        if text not in hidden and text.get_visible() and text.get_text().strip()
    ]
    renderer = canvas.get_renderer()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts]


@pytest.fixture(scope="session")
def assert_legible():
    """Assert: no text on another, none outside the page, none smaller than 6 points."""

    def check(figure):
        boxes = drawn_texts(figure)
        page = figure.bbox
        assert len(boxes) > 5
        for text, box in boxes:
            assert box.x0 >= -1, text
            assert box.x1 <= page.x1 + 1, text
            assert box.y0 >= -1, text
            assert box.y1 <= page.y1 + 1, text
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            # A pixel of common margin is not an overlap: boxes hold the line's full height.
            width = min(a.x1, b.x1) - max(a.x0, b.x0)
            height = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert width <= 1 or height <= 1, (one, other)
        assert min(text.get_fontsize() for text in figure.findobj(Text)) >= 6

    return check
