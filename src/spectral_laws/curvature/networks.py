"""The pipeline's networks: one configured model, trained from one replicate's seed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.config import Model, Training
from spectral_laws.curvature.checkpoints import model_arrays
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training import TrainingResult, train_classifier
from spectral_laws.device import find_device


@dataclass(frozen=True)
class TrainedNetwork:
    """Weights and buffers of a trained network, with the history of its training.

    Attributes:
        arrays: the state dictionary, see :func:`spectral_laws.curvature.checkpoints.model_arrays`.
        history: columns model, seed (the replicate), and those of
            :class:`spectral_laws.curvature.training.Epoch`.
        training: holds the scratch state, to be discarded once the results are on disk.
    """

    arrays: dict[str, NDArray[Any]]
    history: pd.DataFrame
    training: TrainingResult


def train_network(
    model: Model,
    data: ImageData,
    training: Training,
    *,
    name: str,
    replicate: int,
    seed: int,
    device: str = "cpu",
    scratch: Path | None = None,
) -> TrainedNetwork:
    """Build and train replicate number ``replicate`` of the model called ``name``.

    Initial weights and visiting order come from the stream (seed, replicate), so replicates are
    independent and a model's name changes nothing but the table's column.

    Raises:
        ConfigError: if the device is not there.
        NumericalError: if the training diverges.
    """
    target = find_device(device)
    replicate_seed = rng.torch_seed(seed, "network", replicate)
    network = build_model(
        model,
        in_channels=data.in_channels,
        image_size=data.image_size,
        n_classes=data.n_classes,
        seed=replicate_seed,
    )
    result = train_classifier(
        network,
        data,
        training,
        seed=replicate_seed,
        device=target,
        scratch=scratch,
        label=f"{name}, replicate {replicate}",
    )
    history = result.history.copy()
    history.insert(0, "model", name)
    history.insert(1, "seed", replicate)
    return TrainedNetwork(model_arrays(network), history, result)
