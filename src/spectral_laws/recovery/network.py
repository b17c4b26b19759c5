"""A three-layer ReLU network trained by AdamW, a reminder of what practice would do."""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch._dynamo  # the first optimizer loads it anyway: 1.4 s, which belong to the start
from numpy.typing import NDArray
from torch import Tensor, nn

from spectral_laws.artifacts import check_finite
from spectral_laws.settings.recovery import NetworkBaseline

VALIDATION_SHARE = 0.2
"""Of the training samples, the last ones: held out to choose the epoch."""


@dataclass(frozen=True)
class NetworkFit:
    """A trained network.

    Attributes:
        network: d -> width -> width -> 1, of standardised labels.
        mean: of the labels it was trained on.
        scale: their standard deviation.
        epoch: the chosen one, 1 or later.
        validation_error: its mean squared error on the held-out samples, in units of the labels.
    """

    network: nn.Sequential
    mean: float
    scale: float
    epoch: int
    validation_error: float

    def predict(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions for inputs m x d, m numbers."""
        with torch.inference_mode():
            outputs = self.network(_tensor(inputs))[:, 0].double().numpy()
        return np.asarray(outputs * self.scale + self.mean)


def fit_network(
    inputs: NDArray[np.float64],
    labels: NDArray[np.float64],
    settings: NetworkBaseline,
    *,
    seed: int = 0,
) -> NetworkFit:
    """Train d -> width -> width -> 1 by AdamW on mini-batches, with a cosine learning rate.

    The last fifth of the samples is held out; the weights of the epoch with the smallest error on
    it are kept. Labels are standardised by the mean and deviation of the others. All in float32 on
    the CPU; the same seed and number of threads give the same network.

    Raises:
        ValueError: with fewer than 5 samples, or where all labels are equal.
        NumericalError: if training runs away to NaN or infinity.
    """
    held = int(VALIDATION_SHARE * len(labels))
    if held < 1:
        raise ValueError(f"a network needs at least 5 samples, got {len(labels)}")
    fitted = len(labels) - held
    mean, scale = float(labels[:fitted].mean()), float(labels[:fitted].std())
    if scale == 0.0:
        raise ValueError("labels are all equal: there is nothing to fit")
    points, targets = _tensor(inputs), _tensor((labels - mean) / scale)
    random = torch.Generator().manual_seed(seed)
    network = _build(inputs.shape[1], settings.width, random)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    steps = settings.epochs * math.ceil(fitted / settings.batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    best = (math.inf, 0, network.state_dict())
    for epoch in range(1, settings.epochs + 1):
        order = torch.randperm(fitted, generator=random)
        for low in range(0, fitted, settings.batch_size):
            rows = order[low : low + settings.batch_size]
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(network(points[rows])[:, 0], targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        with torch.inference_mode():
            error = float(nn.functional.mse_loss(network(points[fitted:])[:, 0], targets[fitted:]))
        check_finite(f"validation error of the network with n = {len(labels)}", error)
        if error < best[0]:
            best = (error, epoch, copy.deepcopy(network.state_dict()))
    network.load_state_dict(best[2])
    return NetworkFit(network, mean, scale, best[1], best[0] * scale**2)


def _build(dimension: int, width: int, random: torch.Generator) -> nn.Sequential:
    """He-normal weights and zero biases, drawn from ``random`` alone."""
    network = nn.Sequential(
        nn.Linear(dimension, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
    )
    for layer in network:
        if isinstance(layer, nn.Linear):
            gain = math.sqrt(1.0 if layer.out_features == 1 else 2.0)
            nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.in_features), generator=random)
            nn.init.zeros_(layer.bias)
    return network


def _tensor(values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
