"""Synthetic tables with the columns and the look of the real ones."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from spectral_laws.plotting.style import house_style

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
MODELS = {"resnet18": RESNET, "mlp": ["layers.0", "layers.1", "layers.2", "head"]}


FITTED = [
    *(
        f"{slope}{end}"
        for slope in ("alpha", "gamma", "s")
        for end in ("", "_low", "_high", "_stderr", "_r2")
    ),
    "transfer_error",
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


def layer_tables(model, layer, index, seed, generator):
    kind = "head" if layer == MODELS[model][-1] else "conv" if model == "resnet18" else "linear"
    alpha = {"conv": 2.0, "linear": 1.6, "head": 2.6}[kind] + 0.15 * generator.standard_normal()
    count = 9 if kind == "head" else 20
    k = np.arange(1, count + 1)
    sigma = (
        0.05
        * k ** -(1.2 + 0.2 * generator.random())
        * np.exp(0.1 * generator.standard_normal(count))
    )
    curvature = 30 * sigma**alpha * np.exp(0.3 * generator.standard_normal(count))
    if index % 5 == 3:
        curvature[-2:] *= -1
    head = {
        "model": model,
        "architecture": model,
        "seed": seed,
        "layer_index": index,
        "layer": layer,
        "kind": kind,
    }
    spectra = pd.DataFrame(
        {
            **head,
            "n_rows": 64,
            "n_columns": 576,
            "index": k,
            "singular_value": sigma,
            "directional_curvature": curvature,
            "method": "gauss_newton",
            "n_samples": 256,
            "train_loss": 0.01,
            "n_below_rank": 0,
        }
    )
    good = curvature > 0
    logs = np.log(sigma[good]), np.log(curvature[good]), np.log(k[good])
    slopes = {
        "alpha": np.polyfit(logs[0], logs[1], 1)[0],
        "gamma": -np.polyfit(logs[2], logs[0], 1)[0],
        "s": -np.polyfit(logs[2], logs[1], 1)[0],
    }
    row = head | {
        "n_directions": count,
        "n_used": int(good.sum()),
        "n_nonpositive": int((~good).sum()),
        "n_below_rank": 0,
        "status": "fit",
        "reason": "",
    }
    for name, value in slopes.items():
        row |= {name: value, f"{name}_low": value - 0.2, f"{name}_high": value + 0.25}
        row |= {f"{name}_stderr": 0.1, f"{name}_r2": 0.9}
    error = abs(slopes["s"] - slopes["alpha"] * slopes["gamma"]) / abs(slopes["s"])
    return spectra, row | {"transfer_error": error}


@pytest.fixture(scope="session")
def make_curvature():
    """(models, seeds, no_fit) -> spectra, exponents; layers named in no_fit have no fit."""

    def make(models=tuple(MODELS), seeds=3, no_fit=()):
        spectra, rows = [], []
        for model in models:
            for seed in range(seeds):
                for index, layer in enumerate(MODELS[model]):
                    generator = np.random.default_rng([index, seed, len(model)])
                    table, row = layer_tables(model, layer, index, seed, generator)
                    if layer in no_fit:
                        table = table.head(4)
                        row |= dict.fromkeys(FITTED)
                        row |= {"status": "no fit", "reason": "4 of 4 left", "n_used": 4}
                        row |= {"n_directions": 4, "n_nonpositive": 0}
                    spectra.append(table)
                    rows.append(row)
        return pd.concat(spectra, ignore_index=True), pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def claims_table():
    """All 34 claims, with every verdict and with missing values."""
    verdicts = [
        "reproduced",
        "direction reproduced",
        "not reproduced",
        "not run at this scale",
    ]
    rows = []
    for letter, count, paper in (("A", 12, "recovery"), ("B", 22, "curvature")):
        for i in range(1, count + 1):
            verdict = verdicts[(i * i) % 4 if i < 14 else 3]
            run = verdict != "not run at this scale"
            value = 0.37 * i if run else None
            rows.append(
                {
                    "id": f"{letter}{i}",
                    "paper": paper,
                    "statement": (
                        "The test error falls as a power of the number of samples per feature"
                        + (", with the exponent of the finite tail sum" if i % 3 else "")
                        + (" and for each kind of second layer" if i % 4 == 1 else "")
                    ),
                    "quantity": "slope of log n* on log(1/lambda^2)",
                    "paper_value": "slope 1" if i % 2 else "means 1.97-2.17 on ResNet-18, VGG-11",
                    "our_value": value,
                    "ci_low": None if value is None or i % 6 == 5 else value - 0.12,
                    "ci_high": None if value is None or i % 6 == 5 else value + 0.12,
                    "n": 12 * i if run else None,
                    "verdict": verdict,
                    "reason": "" if run else "needs GPT-2",
                }
            )
    return pd.DataFrame(rows)


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
