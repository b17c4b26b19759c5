"""Training of networks by SGD or AdamW, resumable after every epoch, bit for bit."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch._dynamo  # the first optimizer loads it anyway: 1.4 s, which belong to the start
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.checkpoints import Arrays, model_arrays
from spectral_laws.curvature.training.state import (
    Epoch,
    TrainingState,
    check_batches,
    check_scratch,
    resume,
    save_state,
    state_key,
)
from spectral_laws.errors import NumericalError
from spectral_laws.progress import track
from spectral_laws.settings.curvature import Training

_EVALUATION_BATCH = 256


@dataclass(frozen=True)
class TrainingResult:
    """A finished training.

    Attributes:
        history: one row per epoch, see :class:`Epoch`.
        snapshots: weights and buffers after the epochs that were asked for, and the last.
        state_file: the scratch file that could have resumed it.
    """

    history: pd.DataFrame
    snapshots: dict[int, Arrays]
    state_file: Path | None

    def discard_state(self) -> None:
        """Remove the scratch file; call this once the results are on disk."""
        if self.state_file is not None:
            self.state_file.unlink(missing_ok=True)


def train_model(
    model: nn.Module,
    samples: Samples,
    settings: Training,
    *,
    seed: int,
    snapshots: Sequence[int] = (),
    device: torch.device | str = "cpu",
    scratch: Path | None = None,
    label: str = "training",
) -> TrainingResult:
    """Train ``model`` in place on the mean cross-entropy, over samples or over all positions.

    SGD with momentum or AdamW, learning rate by :func:`one_cycle`. Every epoch visits all
    training samples in an order drawn from the stream (seed, epoch), in nearly equal batches of at
    most ``settings.batch_size``. It stops after the first epoch whose mean training loss is at most
    ``settings.target_loss``, or after ``settings.max_epochs``.

    With ``scratch``, the state after each epoch (weights, buffers, the optimizer's averages,
    history, snapshots) is written there under a hash of everything the result depends on: the
    initial weights, the data, the settings, the seed, the device and PyTorch's version. A training
    that was killed goes on from it and ends in the same bits as one that was not, on the same
    number of threads. A damaged state is reported and not used. The model has no random layers
    (dropout). ``snapshots`` are epochs after which the weights are kept, 0 for the initial ones;
    one behind the last epoch of a training that stops early is never reached. ``label`` is what
    progress lines and errors call the training.

    Raises:
        DataError: if ``scratch`` cannot be written, or the batches leave one sample alone and the
            model has batch norm.
        NumericalError: if the training loss of an epoch is NaN or infinite.
    """
    check_batches(model, len(samples.train_targets), settings.batch_size)
    model.to(device)
    optimizer = make_optimizer(model, settings)
    wanted = set(snapshots)
    state_file: Path | None = None
    state = TrainingState()
    if scratch is not None:
        check_scratch(scratch)
        key = state_key(model, samples, settings, wanted, seed=seed, device=str(device))
        state_file = scratch / f"training-{key}.safetensors"
        state = resume(model, optimizer, state_file)
    if not state.history and 0 in wanted:
        state.snapshots[0] = model_arrays(model)
    train = _tensors(samples.train_inputs, samples.train_targets, device)
    test = _tensors(samples.test_inputs, samples.test_targets, device)
    for epoch in track(
        range(len(state.history) + 1, settings.max_epochs + 1),
        total=settings.max_epochs,
        done=len(state.history),
        label=f"{label}: epochs",
        seconds=0.0,
    ):
        if state.history and state.history[-1].train_loss <= settings.target_loss:
            break
        rate, loss, accuracy = _train_epoch(
            model, optimizer, train, settings, epoch=epoch, seed=seed, label=label
        )
        state.history.append(Epoch(epoch, rate, loss, accuracy, *evaluate(model, *test)))
        if epoch in wanted:
            state.snapshots[epoch] = model_arrays(model)
        if state_file is not None:
            save_state(model, optimizer, state, state_file, seed=seed, device=str(device))
    history = pd.DataFrame([asdict(row) for row in state.history])
    last = {len(state.history): model_arrays(model)}
    return TrainingResult(history, state.snapshots | last, state_file)


def make_optimizer(model: nn.Module, settings: Training) -> torch.optim.Optimizer:
    """The configured optimizer; AdamW's weight decay leaves vectors (biases, norms) alone."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            model.parameters(), lr=rate, momentum=settings.momentum, weight_decay=decay
        )
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=rate, betas=(settings.momentum, 0.999)
    )


def one_cycle(fraction: float) -> float:
    """Learning rate, as a share of its peak, after ``fraction`` of all steps (Smith 2018).

    A half cosine from 1/25 up to 1 over the first 30 %, then a half cosine down to 1/250000.
    """
    start, peak_at, end = 1 / 25, 0.3, 1 / 25e4
    if fraction < peak_at:
        return start + (1 - start) * (1 - math.cos(math.pi * fraction / peak_at)) / 2
    rest = (fraction - peak_at) / (1 - peak_at)
    return end + (1 - end) * (1 + math.cos(math.pi * rest)) / 2


def cross_entropy_of(
    logits: Tensor, targets: Tensor, *, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """Cross-entropy of logits (..., C) and targets (...), over samples and positions alike."""
    return cross_entropy(
        logits.flatten(0, -2),
        targets.flatten(),
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def evaluate(model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[float, float]:
    """Mean cross-entropy and accuracy in eval mode; the mode is restored afterwards."""
    was_training = model.training
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(targets), _EVALUATION_BATCH):
            part = slice(start, start + _EVALUATION_BATCH)
            logits = model(inputs[part])
            loss += cross_entropy_of(logits, targets[part], reduction="sum").item()
            correct += int((logits.argmax(-1) == targets[part]).sum())
    model.train(was_training)
    return loss / targets.numel(), correct / targets.numel()


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train: tuple[Tensor, Tensor],
    settings: Training,
    *,
    epoch: int,
    seed: int,
    label: str,
) -> tuple[float, float, float]:
    """One pass over the data: the last learning rate, the mean loss and the accuracy."""
    inputs, targets = train
    model.train()
    order = rng.generator(seed, "visiting order", epoch).permutation(len(targets))
    # Nearly equal batches: a rest of one sample would have no batch statistics.
    batches = np.array_split(order, math.ceil(len(order) / settings.batch_size))
    last_step = settings.max_epochs * len(batches) - 1
    loss, correct, rate = 0.0, 0, 0.0
    for i, batch in enumerate(batches):
        step = (epoch - 1) * len(batches) + i
        rate = settings.learning_rate * one_cycle(step / max(last_step, 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        chosen = torch.from_numpy(batch).to(targets.device)
        logits = model(inputs[chosen])
        batch_loss = cross_entropy_of(
            logits, targets[chosen], label_smoothing=settings.label_smoothing
        )
        optimizer.zero_grad()
        batch_loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss += batch_loss.item() * len(batch)
        correct += int((logits.detach().argmax(-1) == targets[chosen]).sum())
    if not math.isfinite(loss):
        raise NumericalError(
            f"{label}: the training loss of epoch {epoch} is {loss}; lower learning_rate of its "
            "training (curvature.training)"
        )
    return rate, loss / len(order), correct / targets.numel()


def _tensors(
    inputs: NDArray[Any], targets: NDArray[np.int64], device: torch.device | str
) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)
