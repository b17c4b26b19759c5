"""The control of per-layer learning rates: trainings with eta (s / sbar)^b in every layer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training import TrainingResult, train_model
from spectral_laws.device import find_device
from spectral_laws.errors import DataError
from spectral_laws.settings.curvature import Model, RateVariants, Training

NULLABLE_LAYER_RATES = ("exponent",)
"""Missing for the random control."""

_COLUMNS = ("model", "seed", "layer", "final", "status", "s")


@dataclass(frozen=True)
class RatedTrainings:
    """Trainings of the same networks with different learning rates per layer.

    Attributes:
        table: one row per training, see :func:`train_layer_rates`.
        state_files: scratch states, to be removed once the table is on disk.
    """

    table: pd.DataFrame
    state_files: tuple[Path, ...]

    def discard_states(self) -> None:
        """Remove the scratch files."""
        for path in self.state_files:
            path.unlink(missing_ok=True)


def train_layer_rates(
    model: Model,
    samples: Samples,
    training: Training,
    exponents: pd.DataFrame,
    settings: RateVariants,
    *,
    name: str,
    replicates: Iterable[int],
    seed: int,
    device: str = "cpu",
    scratch: Path | None = None,
) -> RatedTrainings:
    """Train replicates of the model called ``name`` once per variant of the layers' rates.

    A layer with a fitted s > 0 trains at eta (s / sbar)^b, with sbar the mean of s over these
    layers; s is that of the same network after its ordinary training. All other parameters (layers
    without a fit or with s <= 0, normalisations, embeddings) keep eta. Every variant of a replicate
    starts from the same weights and sees the samples in the same order, those of
    :func:`spectral_laws.curvature.networks.train_networks`, so variants are paired by replicate.
    The average rate is kept at b = 1 alone; the schedule and all else are the model's own.

    Args:
        model: settings of the network; without ``weights``.
        samples: inputs and targets.
        training: see :class:`spectral_laws.settings.curvature.Training`.
        exponents: table of ``fit_exponents`` with the final layers of every replicate.
        settings: exponents b, and whether there is a random control: b = 1 with the s of these
            layers exchanged in a random cycle, so that no layer keeps its own.
        name: of the model, kept in the table.
        replicates: trainings, from 0.
        seed: root of the streams.
        device: ``cpu`` or ``cuda``.
        scratch: folder of the resumable states; None keeps none.

    Returns:
        Columns of the table: model, seed (the replicate), variant (none, b = 0.5, ..., inverse for
        b = -1, random), exponent (0 for none, missing for random), n_scaled (layers whose rate
        has a factor), epochs, train_loss (of the last epoch), test_loss, test_accuracy (both after
        it), n_test (targets that the accuracy is a mean over).

    Raises:
        ConfigError: if the device is not there.
        DataError: if the table lacks a column or the layers of a replicate, or ``model`` has
            weights.
        NumericalError: if a training diverges, naming the variant.

    Source: curvature paper, experiment 10.
    """
    if model.weights is not None:
        raise DataError(f"curvature.models.{name} has weights, there is no training to vary")
    target = find_device(device)
    rows: list[dict[str, Any]] = []
    state_files: list[Path] = []
    for replicate in replicates:
        decays = decays_of(exponents, name, replicate)
        generator = rng.generator(seed, "layer rates", replicate)
        replicate_seed = rng.torch_seed(seed, "network", replicate)
        for variant, exponent, rates in rate_variants(decays, settings, generator):
            result = train_model(
                build_model(model, samples, seed=replicate_seed),
                samples,
                training,
                seed=replicate_seed,
                device=target,
                scratch=scratch,
                label=f"{name}, replicate {replicate}, layer rates {variant}",
                layer_rates=rates,
            )
            place = {"model": name, "seed": replicate, "variant": variant, "exponent": exponent}
            rows.append(place | {"n_scaled": len(rates)} | _reached(result, samples))
            if result.state_file is not None:
                state_files.append(result.state_file)
    table = pd.DataFrame(rows).astype({"exponent": "float64"})
    return RatedTrainings(table, tuple(state_files))


def decays_of(exponents: pd.DataFrame, name: str, replicate: int) -> dict[str, float]:
    """Fitted s > 0 of the layers of one trained network, by layer.

    Raises:
        DataError: if the table lacks a column, or has no final layer of this network.
    """
    missing = [column for column in _COLUMNS if column not in exponents.columns]
    if missing:
        raise DataError(f"exponents table: no column {', '.join(missing)}")
    mine = exponents[(exponents["model"] == name) & (exponents["seed"] == replicate)]
    mine = mine[mine["final"].astype(bool)]
    if mine.empty:
        raise DataError(f"exponents table: no trained layer of model {name!r}, seed {replicate}")
    used = mine[(mine["status"] == "fit") & (mine["s"] > 0)]
    return {str(layer): float(s) for layer, s in zip(used["layer"], used["s"], strict=True)}


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


def _reached(result: TrainingResult, samples: Samples) -> dict[str, Any]:
    last = result.history.iloc[-1]
    return {
        "epochs": len(result.history),
        "train_loss": float(last["train_loss"]),
        "test_loss": float(last["test_loss"]),
        "test_accuracy": float(last["test_accuracy"]),
        "n_test": int(samples.test_targets.size),
    }
