from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.optimizers.race import Task
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining

DAMPED = {"alpha": 2.0, "damping": 0.1}


@pytest.fixture(scope="session")
def make_method() -> Callable[..., Method]:
    """Settings of an optimizer, with a grid of one."""

    def make(optimizer: str = "sgd", **changes: object) -> Method:
        values = {"momentum": 0.9, "learning_rates": [0.05], "weight_decays": [0.0]}
        values |= DAMPED if optimizer == "spectral_newton" else {}
        return Method(**{"optimizer": optimizer} | _tuples(values | changes))

    return make


@pytest.fixture(scope="session")
def make_training() -> Callable[..., RaceTraining]:
    """Two epochs of three steps."""

    def make(**changes: int) -> RaceTraining:
        values = {"train_size": 33, "validation_size": 12, "epochs": 2, "batch_size": 12}
        return RaceTraining(**values | changes)

    return make


@pytest.fixture(scope="session")
def images() -> Samples:
    """48 + 20 images of four classes told apart by the mean of a quadrant."""
    labels = np.arange(68) % 4
    pixels = np.random.default_rng(0).normal(size=(68, 1, 8, 8)).astype(np.float32)
    for image, label in zip(pixels, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 2
    return Samples(pixels[:48], labels[:48], pixels[48:], labels[48:], 4)


@pytest.fixture(scope="session")
def language() -> Samples:
    """48 + 16 sequences that count upwards from a random start."""
    tokens = (np.random.default_rng(0).integers(0, 7, 64)[:, None] + np.arange(9)) % 7
    first, rest = tokens[:48], tokens[48:]
    return Samples(first[:, :-1], first[:, 1:], rest[:, :-1], rest[:, 1:], 7, 7)


@pytest.fixture(scope="session")
def mlp() -> Model:
    """Layers ``layers.0``, ``layers.1`` and ``head``."""
    return Model(architecture="mlp", width=6, depth=2, data="toy", training="toy")


@pytest.fixture(scope="session")
def gpt2() -> Model:
    return Model(architecture="gpt2", width=8, depth=1, heads=2, data="toy", training="toy")


@pytest.fixture
def make_task(images, mlp, make_training) -> Callable[..., Task]:
    """A task, by default of the MLP on images."""

    def make(**changes: object) -> Task:
        values = {"name": "toy", "model": mlp, "model_name": "small", "samples": images}
        return Task(**values | {"training": make_training(), "seed": 3} | changes)

    return make


@pytest.fixture
def exponents() -> pd.DataFrame:
    """Exponents of the MLP's layers: alpha 1, 1.5, 2 and s 0.5, 1, 1.5 plus the replicate."""
    rows = [
        {
            "model": model,
            "seed": replicate,
            "layer": layer,
            "epoch": epoch,
            "final": epoch == 4,
            "status": "fit",
            "alpha": 1 + 0.5 * i + 10 * (epoch == 0) + 20 * (model != "small"),
            "s": 0.5 * (i + 1) + replicate + 10 * (epoch == 0) + 20 * (model != "small"),
        }
        for model in ("small", "other")
        for replicate in (0, 1)
        for epoch in (0, 4)
        for i, layer in enumerate(("layers.0", "layers.1", "head"))
    ]
    return pd.DataFrame(rows)


def _tuples(values: dict[str, object]) -> dict[str, object]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
