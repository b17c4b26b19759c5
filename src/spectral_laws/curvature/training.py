"""Training of classifiers: SGD with momentum, resumable after every epoch, bit for bit."""

import hashlib
import json
import logging
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spectral_laws import rng
from spectral_laws.artifacts import Provenance, read_arrays, write_arrays
from spectral_laws.config import Training
from spectral_laws.curvature.checkpoints import load_model_arrays, model_arrays
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.progress import track

logger = logging.getLogger(__name__)

_EVALUATION_BATCH = 256
_STATE_FORMAT = 1  # of the scratch file; raise it when its meaning changes


@dataclass(frozen=True)
class Epoch:
    """One row of the training history.

    ``learning_rate`` is that of the epoch's last step; ``train_*`` are means over the epoch's
    steps, in train mode, and ``test_*`` are measured after it, in eval mode.
    """

    epoch: int
    learning_rate: float
    train_loss: float
    train_accuracy: float
    test_loss: float
    test_accuracy: float


@dataclass(frozen=True)
class TrainingResult:
    """The history of a finished training, and the scratch file that could have resumed it."""

    history: pd.DataFrame
    state_file: Path | None

    def discard_state(self) -> None:
        """Remove the scratch file; call this once the results are on disk."""
        if self.state_file is not None:
            self.state_file.unlink(missing_ok=True)


def train_classifier(
    model: nn.Module,
    data: ImageData,
    settings: Training,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    scratch: Path | None = None,
    label: str = "training",
) -> TrainingResult:
    """Train ``model`` in place on the mean cross-entropy.

    SGD with momentum and weight decay, learning rate by :func:`one_cycle`. Every epoch visits all
    training images in an order drawn from the stream (seed, epoch), in nearly equal batches of at
    most ``settings.batch_size``. It stops after the first epoch whose mean training loss is at most
    ``settings.target_loss``, or after ``settings.max_epochs``.

    With ``scratch``, the state after each epoch (weights, buffers, momenta, history) is written
    there under a hash of everything the result depends on: the initial weights, the data, the
    settings, the seed, the device and PyTorch's version. A training that was killed goes on from it
    and ends in the same bits as one that was not, on the same number of threads. A damaged state
    is reported and not used.

    Args:
        model: a network without random layers (dropout); it is moved to ``device``.
        data: images and labels.
        settings: see :class:`spectral_laws.config.Training`.
        seed: of the visiting order.
        device: ``cpu`` or ``cuda``.
        scratch: folder of the resumable state; None keeps no state.
        label: what to call this training in progress lines and errors.

    Returns:
        One row per epoch, see :class:`Epoch`.

    Raises:
        NumericalError: if the training loss of an epoch is NaN or infinite.
    """
    model.to(device)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    state_file: Path | None = None
    history: list[Epoch] = []
    if scratch is not None:
        key = _state_key(model, data, settings, seed=seed, device=str(device))
        state_file = scratch / f"training-{key}.safetensors"
        history = _resume(model, optimizer, state_file)
    train = _tensors(data.train_images, data.train_labels, device)
    test = _tensors(data.test_images, data.test_labels, device)
    remaining = range(len(history) + 1, settings.max_epochs + 1)
    for epoch in track(
        remaining,
        total=settings.max_epochs,
        done=len(history),
        label=f"{label}: epochs",
        seconds=0.0,
    ):
        if history and history[-1].train_loss <= settings.target_loss:
            break
        rate, loss, accuracy = _train_epoch(
            model, optimizer, train, settings, epoch=epoch, seed=seed, label=label
        )
        history.append(Epoch(epoch, rate, loss, accuracy, *evaluate(model, *test)))
        if state_file is not None:
            _save(model, optimizer, history, state_file, seed=seed, device=str(device))
    return TrainingResult(pd.DataFrame([asdict(row) for row in history]), state_file)


def one_cycle(fraction: float) -> float:
    """Learning rate, as a share of its peak, after ``fraction`` of all steps (Smith 2018).

    A half cosine from 1/25 up to 1 over the first 30 %, then a half cosine down to 1/250000.
    """
    start, peak_at, end = 1 / 25, 0.3, 1 / 25e4
    if fraction < peak_at:
        return start + (1 - start) * (1 - math.cos(math.pi * fraction / peak_at)) / 2
    rest = (fraction - peak_at) / (1 - peak_at)
    return end + (1 - end) * (1 + math.cos(math.pi * rest)) / 2


def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Mean cross-entropy and accuracy in eval mode; the mode is restored afterwards."""
    was_training = model.training
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(labels), _EVALUATION_BATCH):
            part = slice(start, start + _EVALUATION_BATCH)
            logits = model(images[part])
            loss += cross_entropy(logits, labels[part], reduction="sum").item()
            correct += int((logits.argmax(1) == labels[part]).sum())
    model.train(was_training)
    return loss / len(labels), correct / len(labels)


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.SGD,
    train: tuple[Tensor, Tensor],
    settings: Training,
    *,
    epoch: int,
    seed: int,
    label: str,
) -> tuple[float, float, float]:
    """One pass over the data: the last learning rate, the mean loss and the accuracy."""
    images, labels = train
    model.train()
    order = rng.generator(seed, "visiting order", epoch).permutation(len(labels))
    # Nearly equal batches: a rest of one image would have no batch statistics.
    batches = np.array_split(order, math.ceil(len(order) / settings.batch_size))
    last_step = settings.max_epochs * len(batches) - 1
    loss, correct, rate = 0.0, 0, 0.0
    for i, batch in enumerate(batches):
        step = (epoch - 1) * len(batches) + i
        rate = settings.learning_rate * one_cycle(step / max(last_step, 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        chosen = torch.from_numpy(batch).to(labels.device)
        logits = model(images[chosen])
        batch_loss = cross_entropy(logits, labels[chosen])
        optimizer.zero_grad()
        batch_loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss += batch_loss.item() * len(batch)
        correct += int((logits.detach().argmax(1) == labels[chosen]).sum())
    if not math.isfinite(loss):
        raise NumericalError(
            f"{label}: the training loss of epoch {epoch} is {loss}; lower "
            "curvature.training.learning_rate"
        )
    return rate, loss / len(order), correct / len(order)


def _tensors(
    images: NDArray[np.float32], labels: NDArray[np.int64], device: torch.device | str
) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)


def _state_key(
    model: nn.Module, data: ImageData, settings: Training, *, seed: int, device: str
) -> str:
    digest = hashlib.sha256()
    facts = [_STATE_FORMAT, torch.__version__, device, seed, settings.model_dump(mode="json")]
    digest.update(json.dumps(facts, sort_keys=True).encode())
    # A state made by other code is not this training's.
    sources = [sys.modules[type(module).__module__] for module in model.modules()]
    files = {__file__, *(getattr(source, "__file__", None) or __file__ for source in sources)}
    for file in sorted(files):
        digest.update(Path(file).read_bytes())
    for arrays in (model_arrays(model), data.as_arrays()):
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:20]


def _save(
    model: nn.Module,
    optimizer: torch.optim.SGD,
    history: list[Epoch],
    path: Path,
    *,
    seed: int,
    device: str,
) -> None:
    arrays = {f"model/{name}": array for name, array in model_arrays(model).items()}
    for name, parameter in model.named_parameters():
        momentum = optimizer.state[parameter].get("momentum_buffer")
        if momentum is not None:
            arrays[f"momentum/{name}"] = momentum.cpu().numpy()
    table = pd.DataFrame([asdict(row) for row in history])
    arrays |= {f"history/{name}": table[name].to_numpy() for name in table}
    write_arrays(arrays, path, Provenance(parameters={}, seed=seed, device=device))


def _resume(model: nn.Module, optimizer: torch.optim.SGD, path: Path) -> list[Epoch]:
    """Load the state at ``path`` if there is a sound one; return its history."""
    if not path.exists():
        return []
    try:
        arrays = read_arrays(path)
        parts: dict[str, dict[str, NDArray[Any]]] = {"model": {}, "momentum": {}, "history": {}}
        for name, array in arrays.items():
            kind, _, rest = name.partition("/")
            parts.setdefault(kind, {})[rest] = array
        history = _history(parts["history"], path)
        _check_momenta(model, optimizer, parts["momentum"], path)
        load_model_arrays(model, parts["model"], source=str(path))
    except DataError as error:
        logger.warning("saved training state not used, training starts again: %s", error)
        return []
    for name, parameter in model.named_parameters():
        if name in parts["momentum"]:
            momentum = torch.from_numpy(parts["momentum"][name]).to(parameter.device)
            optimizer.state[parameter]["momentum_buffer"] = momentum
    logger.info("training goes on after epoch %d from %s", len(history), path)
    return history


def _history(columns: dict[str, NDArray[Any]], path: Path) -> list[Epoch]:
    names = list(Epoch.__dataclass_fields__)
    if sorted(columns) != sorted(names) or len({column.shape for column in columns.values()}) != 1:
        raise DataError(f"{path}: its history is incomplete")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    history = [Epoch(*row) for row in rows]
    if [row.epoch for row in history] != list(range(1, len(history) + 1)):
        raise DataError(f"{path}: its history has wrong epochs")
    return history


def _check_momenta(
    model: nn.Module, optimizer: torch.optim.SGD, momenta: dict[str, NDArray[Any]], path: Path
) -> None:
    uses_momentum = optimizer.defaults["momentum"] > 0
    expected = {n: tuple(p.shape) for n, p in model.named_parameters()} if uses_momentum else {}
    if {name: array.shape for name, array in momenta.items()} != expected:
        raise DataError(f"{path}: its momenta do not fit the model")
