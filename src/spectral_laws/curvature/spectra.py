"""Measured spectra of trained networks as tidy tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.derivatives.directional import (
    DirectionalSpectrum,
    measure_directional_curvature,
)
from spectral_laws.curvature.kronecker.ladder import Ladder, measure_ladder
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.models.roles import layer_role
from spectral_laws.curvature.training.checkpoints import Arrays, last_epochs, load_model_arrays
from spectral_laws.device import find_device
from spectral_laws.errors import DataError
from spectral_laws.settings.curvature import Measurement, Model
from spectral_laws.tables.schemas import load_schema

RUNGS = (
    "gauss_newton",
    "fisher",
    "positions",
    "kronecker",
    "positions_true",
    "kronecker_true",
    "rho_delta",
    "rho_a",
    "lambda_delta",
    "lambda_a",
)
"""Columns of the ladder in the spectra table: missing where a layer has none."""

Batch = tuple[Tensor, Tensor]


def measure_networks(
    networks: Mapping[tuple[int, int], Arrays],
    samples: Samples,
    model: Model,
    measurement: Measurement,
    *,
    name: str,
    seed: int,
    halves: bool = False,
    label_smoothing: float = 0.0,
    device: str = "cpu",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure networks in eval mode, in float32, on a fixed batch of training samples.

    The batch is drawn from the stream of ``seed`` alone, so every network on the same data is
    measured on the same one. The ladder is measured on the last epoch of each replicate.
    ``networks`` are state dictionaries by (replicate, epoch), trained on ``samples`` with the given
    label smoothing. batch_size and top_k of ``model`` go before those of ``measurement``. With
    ``halves`` the last epoch is also measured on two disjoint halves of the batch.

    Returns:
        The spectra (see :func:`spectra_table`) and the factors (see :func:`factors_table`).
    """
    target = find_device(device)
    inputs, targets = batch_of(
        samples, model.batch_size or measurement.batch_size, seed=seed, device=target
    )
    top_k = model.top_k or measurement.top_k
    half = len(targets) // 2
    last = last_epochs(networks)
    spectra_tables, factor_tables = [], []
    for (replicate, epoch), network in load_networks(networks, samples, model, device=target):
        final = epoch == last[replicate]
        place = {"model": name, "architecture": model.architecture, "seed": replicate}
        place |= {"epoch": epoch, "final": final}

        def measure(part: slice, network: nn.Module = network) -> list[DirectionalSpectrum]:
            return measure_directional_curvature(
                network,
                inputs[part],
                targets[part],
                top_k=top_k,
                chunk_size=measurement.chunk_size,
                method=measurement.method,
                label_smoothing=label_smoothing,
                progress=True,
            )

        spectra = measure(slice(None))
        ladders: list[Ladder] | None = None
        if final:
            ladders = measure_ladder(
                network,
                inputs,
                targets,
                spectra,
                chunk_size=measurement.chunk_size,
                label_smoothing=label_smoothing,
                progress=True,
            )
            factor_tables.append(
                factors_table(spectra, ladders, network, place, top_k=measurement.top_k)
            )
        spectra_tables.append(spectra_table(spectra, network, place, part="whole", ladders=ladders))
        if halves and final:
            for part, chosen in (("first", slice(half)), ("second", slice(half, 2 * half))):
                table = spectra_table(measure(chosen), network, place, part=part)
                spectra_tables.append(table)
    # Columns of all-missing values must not decide the type of the whole.
    spectra_frame = pd.concat(spectra_tables, ignore_index=True)
    return (
        spectra_frame.astype(dict.fromkeys(RUNGS, "float64")),
        pd.concat(factor_tables, ignore_index=True),
    )


def load_networks(
    networks: Mapping[tuple[int, int], Arrays],
    samples: Samples,
    model: Model,
    *,
    device: torch.device,
) -> Iterator[tuple[tuple[int, int], nn.Module]]:
    """Networks in eval mode on ``device``, from their state dictionaries."""
    for (replicate, epoch), arrays in networks.items():
        network = build_model(model, samples, seed=0)  # these weights are all replaced
        load_model_arrays(network, arrays, source=f"replicate {replicate}, epoch {epoch}")
        yield (replicate, epoch), network.to(device).eval()


def batch_of(samples: Samples, size: int, *, seed: int, device: torch.device) -> Batch:
    """The fixed measurement batch: drawn without replacement, in an order that is random too."""
    chosen = measurement_batch(len(samples.train_targets), size, seed=seed)
    inputs = torch.from_numpy(samples.train_inputs[chosen])
    if inputs.dim() == 4:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    return inputs.to(device), torch.from_numpy(samples.train_targets[chosen]).to(device)


def measurement_batch(n_available: int, batch_size: int, *, seed: int) -> NDArray[np.int64]:
    """Indices of the fixed measurement batch, drawn without replacement."""
    if batch_size > n_available:
        raise DataError(
            f"curvature.measurement.batch_size: {batch_size}, but there are {n_available} "
            "training samples"
        )
    generator = rng.generator(seed, "measurement batch")
    return generator.choice(n_available, batch_size, replace=False)


def layer_columns(
    network: nn.Module, architecture: str, spectrum: DirectionalSpectrum, index: int
) -> dict[str, Any]:
    """Columns that name a layer: layer_index, layer, kind, role."""
    module = network.get_submodule(spectrum.layer)
    role = "head" if spectrum.kind == "head" else layer_role(architecture, spectrum.layer, module)
    return {"layer_index": index, "layer": spectrum.layer, "kind": spectrum.kind, "role": role}


def spectra_table(
    spectra: Sequence[DirectionalSpectrum],
    network: nn.Module,
    place: Mapping[str, Any],
    *,
    part: str,
    ladders: Sequence[Ladder] | None = None,
) -> pd.DataFrame:
    """One row per layer and direction, in the columns of ``spectra`` in ``tables/curvature.yaml``.

    ``place`` gives the columns that say which network it is, ``part`` which part of the batch.
    Without ``ladders`` :data:`RUNGS` are missing. A layer without any direction (its gradient is
    zero) has one row, with zeros and without rungs.
    """
    tables = []
    for i, spectrum in enumerate(spectra):
        n_rows, n_columns = spectrum.matrix_shape
        columns: dict[str, Any] = dict(place) | {"part": part}
        columns |= layer_columns(network, place["architecture"], spectrum, i)
        k = len(spectrum.singular_values)
        columns |= {
            "n_rows": n_rows,
            "n_columns": n_columns,
            "index": np.arange(1, max(k, 1) + 1),
            "singular_value": spectrum.singular_values if k else np.zeros(1),
            "directional_curvature": spectrum.directional_curvature if k else np.zeros(1),
            "method": spectrum.method,
            "n_samples": spectrum.n_samples,
            "train_loss": spectrum.loss,
            "n_below_rank": spectrum.n_below_rank,
        }
        for rung in RUNGS:
            values = None if ladders is None or k == 0 else getattr(ladders[i], rung)
            columns[rung] = np.nan if values is None else values
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def factors_table(
    spectra: Sequence[DirectionalSpectrum],
    ladders: Sequence[Ladder],
    network: nn.Module,
    place: Mapping[str, Any],
    *,
    top_k: int,
) -> pd.DataFrame:
    """Leading ``top_k`` eigenvalues of both Kronecker factors of every layer that has them."""
    names = {"model": place["model"], "seed": place["seed"]}
    tables = [pd.DataFrame(columns=load_schema("curvature/factors").names)]
    for i, (spectrum, ladder) in enumerate(zip(spectra, ladders, strict=True)):
        for factor, values in (("delta", ladder.delta), ("a", ladder.a)):
            if values is None:
                continue
            kept = values.eigenvalues[:top_k]
            columns = names | layer_columns(network, place["architecture"], spectrum, i)
            columns |= {
                "factor": factor,
                "size": values.size,
                "participation_rank": values.participation_rank,
                "entropy_rank": values.entropy_rank,
                "index": np.arange(1, len(kept) + 1),
                "eigenvalue": kept,
            }
            tables.append(pd.DataFrame(columns))
    return pd.concat(tables[1:] or tables, ignore_index=True)
