"""The pipeline's networks: one configured model, trained from the seeds of its replicates."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training.checkpoints import Arrays, load_checkpoint, model_arrays
from spectral_laws.curvature.training.state import Epoch
from spectral_laws.curvature.training.train import TrainingResult, evaluate, train_model
from spectral_laws.device import find_device
from spectral_laws.errors import DataError
from spectral_laws.settings.curvature import Model, Training


@dataclass(frozen=True)
class TrainedNetworks:
    """Trained networks, and the history of each training.

    Attributes:
        networks: state dictionaries by (replicate, epoch): the model's checkpoints and the last.
        history: columns model, seed (the replicate), and those of
            :class:`spectral_laws.curvature.training.train.Epoch`.
        trainings: hold the scratch states, to be discarded once the results are on disk.
    """

    networks: dict[tuple[int, int], Arrays]
    history: pd.DataFrame
    trainings: tuple[TrainingResult, ...]

    def discard_states(self) -> None:
        """Remove the scratch files."""
        for training in self.trainings:
            training.discard_state()


def train_networks(
    model: Model,
    samples: Samples,
    training: Training,
    *,
    name: str,
    replicates: Iterable[int],
    seed: int,
    device: str = "cpu",
    scratch: Path | None = None,
) -> TrainedNetworks:
    """Build and train replicates of the model called ``name``.

    Initial weights and visiting order come from the stream (seed, replicate), so replicates are
    independent and a model's name changes nothing but the table's column. A model with ``weights``
    is not trained: its file is loaded, and its history is one row of epoch 0.

    Raises:
        ConfigError: if the device is not there.
        DataError: if ``weights`` is missing or does not fit the model.
        NumericalError: if a training diverges.
    """
    target = find_device(device)
    networks: dict[tuple[int, int], Arrays] = {}
    histories: list[pd.DataFrame] = []
    trainings: list[TrainingResult] = []
    for replicate in replicates:
        replicate_seed = rng.torch_seed(seed, "network", replicate)
        network = build_model(model, samples, seed=replicate_seed)
        if model.weights is not None:
            load_checkpoint(network, _existing(Path(model.weights), name))
            history = _history_of_weights(network.to(target), samples, target)
            networks[replicate, 0] = model_arrays(network)
        else:
            result = train_model(
                network,
                samples,
                training,
                seed=replicate_seed,
                snapshots=model.checkpoints,
                device=target,
                scratch=scratch,
                label=f"{name}, replicate {replicate}",
            )
            history = result.history.copy()
            trainings.append(result)
            networks |= {(replicate, epoch): a for epoch, a in result.snapshots.items()}
        history.insert(0, "model", name)
        history.insert(1, "seed", replicate)
        histories.append(history)
    return TrainedNetworks(networks, pd.concat(histories, ignore_index=True), tuple(trainings))


def _existing(weights: Path, name: str) -> Path:
    if not weights.is_file():
        raise DataError(
            f"{weights}: no such file; curvature.models.{name}.weights must be a safetensors file "
            "with torchvision's names, as safetensors.torch.save_file(model.state_dict(), path) "
            "makes it"
        )
    return weights


def _history_of_weights(
    network: torch.nn.Module, samples: Samples, device: torch.device
) -> pd.DataFrame:
    """One row for a network that was trained elsewhere; both parts in eval mode."""
    parts = (
        (samples.train_inputs, samples.train_targets),
        (samples.test_inputs, samples.test_targets),
    )
    values = [
        evaluate(network, torch.from_numpy(x).to(device), torch.from_numpy(y).to(device))
        for x, y in parts
    ]
    row = Epoch(0, 0.0, *values[0], *values[1])
    return pd.DataFrame([row.__dict__])
