"""Synthetic tables with the columns and the look of the real ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from scipy.special import zeta
from synthetic import curvature, optimizers, recovery

from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.verdicts import VERDICTS
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
BLOCKS = {f"blocks.{i}.{name}": role for i in range(6) for name, role in BLOCK.items()}
LAYERS = {
    "resnet18": {name: "pointwise_conv" if "downsample" in name else "conv" for name in RESNET}
    | {"fc": "head"},
    "vgg11": {f"features.{i}": "conv" for i in (0, 4, 8, 11, 15, 18, 22, 25)}
    | {"classifier.0": "linear", "classifier.3": "linear", "classifier.6": "head"},
    "mlp": {f"layers.{i}": "linear" for i in range(3)} | {"head": "head"},
    "gpt2": BLOCKS | {"head": "head"},
    "vit_tiny": {"patch_embedding": "patch_embedding"} | BLOCKS | {"head": "head"},
}
"""Layers of the main networks, with their roles."""
EXPERIMENTS = curvature.EXPERIMENTS | {"depth": ("depth", {"mlp_d2": 2, "mlp_d4": 4, "mlp_d8": 8})}
RUNGS = {
    "exact/gauss_newton": 0.0,
    "gauss_newton/fisher": 0.3,
    "fisher/positions": 1.0,
    "positions/kronecker": 0.5,
    "exact/kronecker": 1.8,
    "gauss_newton/positions_true": 1.0,
    "positions_true/kronecker_true": 0.5,
    "exact/kronecker_true": 1.5,
}
# race -> task, epochs, test samples or tokens
RACES = {
    "images": ("classification", 8, 500),
    "text": ("language_modelling", 5, 2560),
    "digits": ("classification", 12, 400),
}
SECONDS = {
    "sgd": 1.0,
    "adamw": 1.1,
    "muon": 2.3,
    "soap": 6.0,
    "spectral_newton_1": 1.7,
    "spectral_newton_2": 1.5,
    "spectral_newton_measured": 1.8,
    "sgd_by_damping": 1.0,
}
"""Methods of the races, and their seconds per epoch."""


def as_written(tables, room):
    """The tables with the columns of their schemas; those that no figure shows are missing."""
    return {name: load_schema(f"{room}/{name}").frame(rows) for name, rows in tables.items()}


def recovered(study, seeds):
    """Errors, overlaps and thresholds of a study, one table per dimension."""
    features, degree, dimensions, gamma, readout, width, (start, stop, count) = STUDIES[study]
    for dimension in dimensions:
        grid = [round(dimension**a) for a in np.linspace(start, stop, count)]
        thresholds = recovery.make_thresholds(
            dimensions=(dimension,),
            seeds=seeds,
            factor=1.5,
            study=study,
            features=features,
            degree=degree,
            gamma=gamma,
            readout=readout,
            width=width,
        )
        loss = 3 / dimension if features == "hermite" else 0.0
        directions = recovery.make_smooth_directions(thresholds, sizes=grid, loss=loss)
        limits = recovery.censored(thresholds, grid[0], grid[-1])
        yield recovery.errors_of(directions), directions, limits


@pytest.fixture(scope="session")
def make_recovery():
    """(studies, seeds) -> metrics, directions, thresholds."""

    def make(studies=tuple(STUDIES), seeds=5):
        parts = [tables for study in studies for tables in recovered(study, seeds)]
        tables = [pd.concat(part, ignore_index=True) for part in zip(*parts, strict=True)]
        names = ("metrics", "directions", "thresholds")
        return tuple(as_written(dict(zip(names, tables, strict=True)), "recovery").values())

    return make


@pytest.fixture(scope="session")
def make_baselines():
    """(studies, seeds) -> baselines table; the polynomial kernel needs 0.1 d^(2q) samples."""

    def make(studies=("depth_linear", "depth_quadratic"), seeds=5):
        tables = []
        for study in studies:
            _, degree, dimensions, *_ = STUDIES[study]
            table = recovery.make_baselines(
                2 * degree,
                dimensions=dimensions,
                seeds=seeds,
                sizes=(5, 4100, 16),
                methods=METHODS,
                law=lambda dimension, power=2 * degree: 0.1 ** (1 / power) * dimension,
                study=study,
                degree=degree,
            )
            tables.append(table)
        baselines = pd.concat(tables, ignore_index=True)
        return as_written({"baselines": baselines}, "recovery")["baselines"]

    return make


@pytest.fixture(scope="session")
def make_perturbation():
    """(seeds) -> perturbation table: error ~ norm^2, norm ~ sqrt(D/n), bound 3 k too big."""

    def make(seeds=4):
        settings = {"seeds": seeds, "noise": 0.0, "unresolved": 2}
        tables = [
            recovery.make_perturbation(dimensions=(40, 60, 80), **settings),
            recovery.make_perturbation(dimensions=(40,), width=8, study="linear_wide", **settings),
            recovery.make_perturbation(
                dimensions=(10, 12, 14), width=2, degree=2, study="quadratic", **settings
            ),
        ]
        table = pd.concat(tables, ignore_index=True)
        return as_written({"perturbation": table}, "recovery")["perturbation"]

    return make


@pytest.fixture(scope="session")
def make_population():
    def make(*arguments, **settings):
        table = recovery.make_population(*arguments, **settings)
        return as_written({"population": table}, "recovery")["population"]

    return make


@pytest.fixture(scope="session")
def make_error_exponents():
    def make(gammas=(0.2, 0.4, 0.6, 0.8, 1.0, 1.5), widths=(30, 100, 300, 1000), seeds=2):
        return recovery.make_error_exponents(gammas=gammas, widths=widths, seeds=seeds)

    return make


@pytest.fixture(scope="session")
def make_spectrum():
    return recovery.make_spectrum


def bound_of(product):
    """zeta(p)^2 / zeta(2p), the participation of an endless power law, where it is finite."""
    return (zeta(product) ** 2 / zeta(2 * product)).where(product > 1)


@pytest.fixture(scope="session")
def make_curvature():
    """(seeds, no_fit, experiments, models) -> tables by name; no_fit names layers."""

    def make(seeds=3, no_fit=(), experiments=tuple(EXPERIMENTS), models=curvature.MAIN):
        chosen = {"architectures": ("architecture", {name: name for name in models})}
        chosen |= {name: EXPERIMENTS[name] for name in experiments if name != "architectures"}
        networks = {model: None for _, variants in chosen.values() for model in variants}
        exponents = curvature.make_exponents(
            models=networks,
            seeds=seeds,
            named=LAYERS,
            lognormal=0.6,
            start_lognormal=0.4,
            bound=bound_of,
            early={"resnet18": (0, 1, 3, 6)} if "resnet18" in networks else {},
        )
        exponents = curvature.without_fit(exponents, no_fit)
        spectra = curvature.make_spectra(exponents, n=curvature.TOP_K)
        tables = {
            "spectra": spectra,
            "exponents": exponents,
            "experiments": curvature.make_experiments(exponents, experiments=chosen),
            "ladder": curvature.make_ladder(exponents, spread=0.3, scatter=0.5, rungs=RUNGS),
            "decomposition": curvature.make_decomposition(exponents),
            "independence": curvature.make_independence(exponents),
            "windows": curvature.make_windows(exponents),
            "weights": curvature.make_weights(exponents),
            "factor_models": curvature.make_factor_models(exponents),
            "finite_differences": curvature.make_finite_differences(
                models=[model for model in ("mlp", "resnet18") if model in models],
                seeds=min(seeds, 2),
                named=LAYERS,
            ),
            "eigenvalues": curvature.make_eigenvalues(spectra),
        }
        return as_written(tables, "curvature")

    return make


@pytest.fixture(scope="session")
def make_optimizers():
    """(seeds, races, methods) -> tables by name."""

    def make(seeds=5, races=("images", "text"), methods=tuple(optimizers.RACERS)):
        gains = {"sgd_by_damping": -20.0}
        parts = []
        for name in races:
            task, epochs, n_test = RACES[name]
            parts.append(
                optimizers.make_race(
                    tasks={name: task},
                    gains=gains,
                    seeds=seeds,
                    epochs=epochs,
                    steps=10 * epochs,
                    n_test=n_test,
                    noise=0.5,
                    base=70.0,
                )
            )
        race = pd.concat(parts, ignore_index=True)
        race = race[race["method"].isin(methods)].reset_index(drop=True)
        rates = (0.001, 0.003, 0.01)
        chosen = {method: rates[place % 3] for place, method in enumerate(sorted(methods))}
        tuning = optimizers.make_tuning(race, chosen=chosen, rates=rates, trainings=2)
        lost = tuning["method"].eq("sgd") & tuning["learning_rate"].eq(0.01) & ~tuning["chosen"]
        tables = {
            "race": race,
            "race_times": optimizers.make_race_times(race, SECONDS),
            "tuning": tuning.assign(
                diverged=lost, validation_loss=tuning["validation_loss"].mask(lost)
            ),
            "tuning_times": optimizers.make_tuning_times(tuning, race, SECONDS),
            "layer_rates": optimizers.make_layer_rates(
                models=("resnet18",),
                races=[name for name in races if name != "text"],
                seeds=seeds,
                n_test=500,
            ),
            "responses": optimizers.make_responses(
                methods, {"layer1.0.conv1": 16, "layer4.1.conv2": 128}
            ),
        }
        return as_written(tables, "optimizers")

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
