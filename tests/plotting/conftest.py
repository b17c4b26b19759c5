"""Synthetic tables with the columns and the look of the real ones."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from spectral_laws.plotting.style import house_style

STUDIES = {
    "quadratic": (2, (24, 36, 54), 0.4, "identity", (1.4, 3.4, 13)),
    "quadratic_tanh": (2, (36,), 0.4, "tanh", (1.4, 3.4, 13)),
    "quadratic_steep": (2, (54,), 1.0, "identity", (1.4, 3.6, 13)),
    "linear": (1, (50, 100, 200, 400), 0.4, "identity", (0.6, 2.2, 17)),
}
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


def teacher(degree, dimension, gamma):
    width = math.floor(dimension**0.5 + 1e-9)
    weights = np.arange(1, width + 1) ** -gamma
    return math.comb(dimension + degree - 1, degree), weights / np.linalg.norm(weights)


def squared_overlaps(samples_per_feature, weights, generator):
    ratio = samples_per_feature * weights**2 / 4
    clean = 1 / (1 + np.exp(-2.5 * np.log(np.maximum(ratio, 1e-9))))
    return np.clip(clean + 0.04 * generator.standard_normal(weights.size), 0.001, 0.999)


def crossing(grid, curve, above):
    ends = slice(above - 1, above + 1)
    return float(np.exp(np.interp(0.5, curve[ends], np.log(grid[ends]))))


def recovery_jobs(studies, seeds):
    for study in studies:
        degree, dimensions, gamma, readout, (start, stop, count) = STUDIES[study]
        for dimension in dimensions:
            size, weights = teacher(degree, dimension, gamma)
            grid = [round(dimension**a) for a in np.linspace(start, stop, count)]
            for seed in range(seeds):
                head = {
                    "study": study,
                    "degree": degree,
                    "dimension": dimension,
                    "feature_dimension": size,
                    "n_directions": weights.size,
                    "gamma": gamma,
                    "readout": readout,
                    "seed": seed,
                }
                yield head, weights, grid, np.random.default_rng([degree, dimension, seed])


@pytest.fixture(scope="session")
def make_recovery():
    """(studies, seeds) -> metrics, directions, thresholds, kernel."""

    def make(studies=tuple(STUDIES), seeds=5):
        metrics, directions, thresholds, kernel = [], [], [], []
        for head, weights, grid, generator in recovery_jobs(studies, seeds):
            size, dimension = head["feature_dimension"], head["dimension"]
            norm = 1 / (np.arange(1, weights.size + 1) ** (-2 * head["gamma"])).sum()
            curves = []
            for n in grid:
                cos2 = squared_overlaps(n / size, weights, generator)
                curves.append(cos2)
                mse = {"independent": np.sum(weights**2 * (1 - cos2**2)) + 0.003}
                mse["same_sample"] = mse["independent"] + 0.6 / (1 + n / size / 3)
                mse["outliers"] = mse["independent"] * 1.15
                recovered = (norm * n / size) ** (1 / (2 * head["gamma"]))
                common = {
                    "feature_overlap": cos2.mean(),
                    "n_recovered": int((cos2 >= 0.5).sum()),
                    "n_outliers": int((cos2 >= 0.4).sum()),
                    "tail_mse": float((weights[int(recovered) :] ** 2).sum()),
                    "edge_low": -1.0,
                    "edge_high": 1.5,
                    "iterations": 20,
                    "residual": 5e-5,
                }
                metrics += [
                    head | {"sample_size": n, "second_layer": layer, "mse": value} | common
                    for layer, value in mse.items()
                ]
                directions += [
                    head
                    | {
                        "sample_size": n,
                        "direction": i + 1,
                        "weight": weights[i] * (-1) ** i,
                        "cos2": cos2[i],
                        "matched_overlap": math.sqrt(cos2[i]),
                        "eigenvalue": weights[i],
                        "threshold": size / weights[i] ** 2,
                    }
                    for i in range(weights.size)
                ]
                if n <= 4000:
                    noise = math.exp(0.05 * generator.standard_normal())
                    error = noise / (1 + n / dimension ** (2 * head["degree"]))
                    kernel.append(
                        head | {"sample_size": n, "ridge": 1.0, "loo_error": error, "mse": error}
                    )
            for i in range(weights.size):
                curve = np.array([cos2[i] for cos2 in curves])
                above = np.flatnonzero(curve >= 0.5)
                found = above.size > 0 and above[0] > 0
                thresholds.append(
                    head
                    | {
                        "direction": i + 1,
                        "weight": weights[i],
                        "threshold": size / weights[i] ** 2,
                        "half_recovery": crossing(grid, curve, above[0]) if found else None,
                        "censored": "no" if found else "below" if above.size else "above",
                    }
                )
        return tuple(pd.DataFrame(rows) for rows in (metrics, directions, thresholds, kernel))

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
            tables.append(
                pd.DataFrame(
                    {
                        "study": "quadratic",
                        "degree": 2,
                        "dimension": 54,
                        "feature_dimension": size,
                        "n_directions": 7,
                        "gamma": 0.4,
                        "readout": "identity",
                        "seed": seed,
                        "sample_size": n,
                        "eigenvalue": np.sort(values),
                        "mass": mass[np.argsort(values)],
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
