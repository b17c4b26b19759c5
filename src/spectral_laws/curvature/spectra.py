"""Measured spectra of a trained network as a tidy table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from spectral_laws import rng
from spectral_laws.config import Measurement, Model
from spectral_laws.curvature.checkpoints import load_checkpoint
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.curvature.directional import DirectionalSpectrum, measure_directional_curvature
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.device import find_device
from spectral_laws.errors import DataError


def measure_spectra(
    checkpoint: Path,
    data: ImageData,
    model: Model,
    measurement: Measurement,
    *,
    name: str,
    replicate: int,
    seed: int,
    device: str = "cpu",
) -> pd.DataFrame:
    """Measure a checkpoint in eval mode, in float32, on a fixed batch of training images.

    The batch of ``measurement.batch_size`` images is drawn from the stream of ``seed`` alone, so
    every model and replicate is measured on the same one.

    Returns:
        The table of :func:`spectra_table`.

    Raises:
        ConfigError: if the device is not there.
        DataError: if the checkpoint does not fit the model, or the batch is larger than the data.
        NumericalError: as :func:`measure_directional_curvature`.
    """
    target = find_device(device)
    network = build_model(
        model,
        in_channels=data.in_channels,
        image_size=data.image_size,
        n_classes=data.n_classes,
        seed=seed,  # these weights are all replaced
    )
    load_checkpoint(network, checkpoint)
    network.to(target).eval()
    chosen = measurement_batch(len(data.train_labels), measurement.batch_size, seed=seed)
    images = torch.from_numpy(data.train_images[chosen])
    spectra = measure_directional_curvature(
        network,
        images.to(target, memory_format=torch.channels_last),
        torch.from_numpy(data.train_labels[chosen]).to(target),
        top_k=measurement.top_k,
        chunk_size=measurement.chunk_size,
        method=measurement.method,
        progress=True,
    )
    return spectra_table(spectra, name=name, architecture=model.architecture, replicate=replicate)


def measurement_batch(n_available: int, batch_size: int, *, seed: int) -> np.ndarray:
    """Indices of the fixed measurement batch, drawn without replacement and sorted.

    Raises:
        DataError: if ``batch_size`` exceeds ``n_available``.
    """
    if batch_size > n_available:
        raise DataError(
            f"curvature.measurement.batch_size: {batch_size}, but there are {n_available} "
            "training images"
        )
    generator = rng.generator(seed, "measurement batch")
    return np.sort(generator.choice(n_available, batch_size, replace=False))


def spectra_table(
    spectra: Sequence[DirectionalSpectrum], *, name: str, architecture: str, replicate: int
) -> pd.DataFrame:
    """One row per layer and direction.

    Columns: model, architecture, seed (the replicate), layer_index (from 0, in the order of the
    spectra), layer, kind, n_rows, n_columns, index (k from 1), singular_value,
    directional_curvature (of any sign), method, n_samples, train_loss (mean cross-entropy of the
    batch), n_below_rank (leading directions cut by the gradient's numerical rank).
    """
    parts = []
    for layer_index, spectrum in enumerate(spectra):
        n_rows, n_columns = spectrum.matrix_shape
        parts.append(
            pd.DataFrame(
                {
                    "model": name,
                    "architecture": architecture,
                    "seed": replicate,
                    "layer_index": layer_index,
                    "layer": spectrum.layer,
                    "kind": spectrum.kind,
                    "n_rows": n_rows,
                    "n_columns": n_columns,
                    "index": np.arange(1, len(spectrum.singular_values) + 1),
                    "singular_value": spectrum.singular_values,
                    "directional_curvature": spectrum.directional_curvature,
                    "method": spectrum.method,
                    "n_samples": spectrum.n_samples,
                    "train_loss": spectrum.loss,
                    "n_below_rank": spectrum.n_below_rank,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
