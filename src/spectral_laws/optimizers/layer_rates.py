"""The control of per-layer learning rates: trainings with eta (s / sbar)^b in every layer."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from spectral_laws import rng
from spectral_laws.errors import DataError
from spectral_laws.optimizers.measured import check_layers, layer_means
from spectral_laws.optimizers.race import RaceTable, Task
from spectral_laws.optimizers.runs import Choice
from spectral_laws.settings.optimizers import Method, RateVariants

_RESULTS = ("test_loss", "test_accuracy", "diverged")


def train_layer_rates(
    task: Task,
    method: Method,
    history: pd.DataFrame,
    exponents: pd.DataFrame,
    settings: RateVariants,
    *,
    replicates: Iterable[int],
) -> RaceTable:
    """Train the tuned method again, once per exponent b of the layers' learning rates.

    A layer with a measured s > 0 trains at eta (s / sbar)^b, with sbar the mean of s over these
    layers, and s the mean over the measured trainings of the model. All other parameters keep eta,
    and so do the schedule and everything else. Trainings are paired by replicate with those of the
    race (``history``), which are the variant ``none``. The random control is b = 1 with the s of
    the layers exchanged along a random cycle, so that no layer keeps its own.

    Raises:
        DataError: if a table lacks this model, method or race, or an epoch of a training, or names
            a layer that the network does not have.

    Source: curvature paper, experiment 10.
    """
    means = layer_means(exponents, task.model_name, "s")
    check_layers(task.network(0), means, model=task.model_name)
    decays = {layer: s for layer, s in means.items() if s > 0}
    rows: list[dict[str, Any]] = []
    for replicate in replicates:
        finished = _finished(
            history, task.name, settings.method, replicate, epochs=task.training.epochs
        )
        place = {"race": task.name, "model": task.model_name, "seed": replicate}
        n_test = int(task.samples.test_targets.size)
        generator = rng.generator(task.seed, "layer rates", replicate)
        for variant, exponent, rates in rate_variants(decays, settings, generator):
            last = finished
            if variant != "none":
                choice = Choice(
                    method,
                    float(finished["learning_rate"]),
                    float(finished["weight_decay"]),
                    layer_rates=rates,
                )
                last = task.run(choice, "race", replicate, validate=False).iloc[-1]
            about = {"variant": variant, "exponent": exponent, "n_scaled": len(rates)}
            rows.append(
                place | about | {name: last[name] for name in _RESULTS} | {"n_test": n_test}
            )
    table = pd.DataFrame(rows).astype({"exponent": "float64"})
    return RaceTable(table, tuple(task.kept))


def _finished(
    history: pd.DataFrame, race: str, method: str, replicate: int, *, epochs: int
) -> pd.Series:
    """Last epoch of the training without layer rates."""
    needed = ("race", "method", "seed", "epoch", "learning_rate", "weight_decay", *_RESULTS)
    missing = [name for name in needed if name not in history.columns]
    if missing:
        raise DataError(f"history table: no column {', '.join(missing)}")
    rows = history[(history["race"] == race) & (history["method"] == method)]
    rows = rows[rows["seed"] == replicate]
    if rows.empty:
        raise DataError(f"history table: no training {replicate} of {method!r} in race {race!r}")
    if sorted(rows["epoch"]) != list(range(1, epochs + 1)):
        raise DataError(
            f"history table: training {replicate} of {method!r} in race {race!r} has not epochs 1 "
            f"to {epochs}"
        )
    return rows.sort_values("epoch").iloc[-1]


def rate_variants(
    decays: Mapping[str, float], settings: RateVariants, generator: np.random.Generator
) -> list[tuple[str, float | None, dict[str, float]]]:
    """Name, exponent b (None for the random control) and factors of the rates, per variant.

    Factors are (s / sbar)^b, with sbar the mean of ``decays``.
    """
    variants: list[tuple[str, float | None, dict[str, float]]] = [("none", 0.0, {})]
    for b in settings.exponents:
        variants.append(("inverse" if b == -1 else f"b = {b:g}", b, scaled_rates(decays, b)))
    if settings.random:
        variants.append(("random", None, scaled_rates(_exchanged(decays, generator), 1.0)))
    return variants


def scaled_rates(decays: Mapping[str, float], exponent: float) -> dict[str, float]:
    """(s / sbar)^b of every layer; none where there is no layer."""
    if not decays:
        return {}
    s = np.array([*decays.values()], dtype=np.float64)
    return dict(zip(decays, ((s / s.mean()) ** exponent).tolist(), strict=True))


def _exchanged(decays: Mapping[str, float], generator: np.random.Generator) -> dict[str, float]:
    """The same values, moved along a random cycle through all layers."""
    layers, values = [*decays], [*decays.values()]
    cycle = generator.permutation(len(layers))
    moved = dict(zip(cycle.tolist(), np.roll(cycle, 1).tolist(), strict=True))
    return {layer: values[moved[i]] for i, layer in enumerate(layers)}
