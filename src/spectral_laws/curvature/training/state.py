"""Resumable state of a training: what it has reached after an epoch, on disk and back."""

import hashlib
import json
import logging
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from spectral_laws.artifacts import read_arrays, write_arrays
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.checkpoints import (
    Arrays,
    check_model_arrays,
    load_model_arrays,
    model_arrays,
)
from spectral_laws.errors import DataError
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import smallest_batch
from spectral_laws.settings.curvature import Training

logger = logging.getLogger(__name__)

_FORMAT = 3  # of the scratch file; raise it when its meaning changes


@dataclass(frozen=True)
class Epoch:
    """One row of the training history.

    ``learning_rate`` is that of the epoch's last step; ``train_*`` are
    means over the epoch's steps, in train mode, label smoothing included; ``test_*`` are measured
    after it, in eval mode.
    """

    epoch: int
    learning_rate: float
    train_loss: float
    train_accuracy: float
    test_loss: float
    test_accuracy: float


@dataclass
class TrainingState:
    """What a training has reached."""

    history: list[Epoch] = field(default_factory=list)
    snapshots: dict[int, Arrays] = field(default_factory=dict)


def state_key(
    model: nn.Module,
    samples: Samples,
    settings: Training,
    snapshots: set[int],
    *,
    seed: int,
    device: str,
) -> str:
    """Hash of everything that the result of a training depends on."""
    facts = [_FORMAT, sorted(snapshots), settings.model_dump(mode="json")]
    return result_key(facts, model, samples, seed=seed, device=device)


def result_key(
    facts: Sequence[Any], model: nn.Module, samples: Samples, *, seed: int, device: str
) -> str:
    """Hash of JSON-like facts, a network as it is, its samples, and the code that is loaded."""
    packages = [version(package) for package in ("torch", "numpy", "scipy")]
    known = json.dumps([*facts, seed, device, packages], sort_keys=True)
    digest = hashlib.sha256(known.encode())
    # A result made by other code is not this training's.
    mine = [module for name, module in sys.modules.items() if name.startswith("spectral_laws.")]
    for file in sorted({str(module.__file__) for module in mine if module.__file__}):
        digest.update(Path(file).read_bytes())
    # Networks of the same weights may differ in what they make of them (heads, strides, skips).
    for name, module in model.named_modules():
        source = sys.modules[type(module).__module__]
        if getattr(source, "__file__", None):
            digest.update(Path(str(source.__file__)).read_bytes())
        plain = {k: v for k, v in vars(module).items() if isinstance(v, (int, float, str, tuple))}
        digest.update(f"{name} {type(module).__qualname__} {sorted(plain.items())}".encode())
    for arrays in (model_arrays(model), samples.as_arrays()):
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:24]


def check_batches(model: nn.Module, size: int, batch_size: int) -> None:
    """Refuse nearly equal batches of which one holds a single sample, under batch norm."""
    normalised = any(isinstance(module, _BatchNorm) for module in model.modules())
    if normalised and smallest_batch(size, batch_size) < 2:
        raise DataError(
            f"batch_size {batch_size} leaves a batch of one of {size} training samples, and the "
            "network has batch norm"
        )


def check_scratch(folder: Path) -> None:
    """Make the folder of unfinished work, and make sure that it can be written.

    Called before a training, whose result would else be lost after it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"0")
            probe.flush()
    except OSError as error:
        raise DataError(f"{folder}: scratch cannot be written ({error.strerror})") from None


def save_state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    path: Path,
    *,
    seed: int,
    device: str,
) -> None:
    """Write weights, buffers, the optimizer's averages, history and snapshots."""
    arrays = {f"model/{name}": array for name, array in model_arrays(model).items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            if value is not None:
                arrays[f"optimizer/{key}/{name}"] = value.cpu().numpy()
    for epoch, snapshot in state.snapshots.items():
        arrays |= {f"snapshot/{epoch}/{name}": array for name, array in snapshot.items()}
    table = pd.DataFrame([asdict(row) for row in state.history])
    arrays |= {f"history/{name}": table[name].to_numpy() for name in table}
    write_arrays(arrays, path, Provenance(parameters={}, seed=seed, device=device))


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, path: Path) -> TrainingState:
    """Load the state at ``path`` if there is a sound one; return what it had reached."""
    if not path.exists():
        return TrainingState()
    try:
        parts: dict[str, Arrays] = {"model": {}, "optimizer": {}, "history": {}, "snapshot": {}}
        for name, array in read_arrays(path).items():
            kind, _, rest = name.partition("/")
            parts.setdefault(kind, {})[rest] = array
        state = TrainingState(
            _history(parts["history"], path), _snapshots(parts["snapshot"], model, path)
        )
        averages = _averages(model, optimizer, parts["optimizer"], path)
        load_model_arrays(model, parts["model"], source=str(path))
    except DataError as error:
        logger.warning("saved training state not used, training starts again: %s", error)
        return TrainingState()
    for parameter, values in averages:
        optimizer.state[parameter] |= values
    logger.info("training goes on after epoch %d from %s", len(state.history), path)
    return state


def _history(columns: Arrays, path: Path) -> list[Epoch]:
    names = list(Epoch.__dataclass_fields__)
    if sorted(columns) != sorted(names) or len({column.shape for column in columns.values()}) != 1:
        raise DataError(f"{path}: its history is incomplete")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    history = [Epoch(*row) for row in rows]
    if [row.epoch for row in history] != list(range(1, len(history) + 1)):
        raise DataError(f"{path}: its history has wrong epochs")
    return history


def _snapshots(arrays: Arrays, model: nn.Module, path: Path) -> dict[int, Arrays]:
    found: dict[int, Arrays] = {}
    for key, array in arrays.items():
        number, _, name = key.partition("/")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise DataError(f"{path}: snapshot {key!r} is of no epoch")
        found.setdefault(int(number), {})[name] = array
    for epoch, snapshot in found.items():
        check_model_arrays(model, snapshot, source=f"{path}: snapshot {epoch}")
    return found


def _averages(
    model: nn.Module, optimizer: torch.optim.Optimizer, arrays: Arrays, path: Path
) -> list[tuple[nn.Parameter, dict[str, Tensor]]]:
    """The optimizer's running averages per parameter."""
    keys = ["step", "exp_avg", "exp_avg_sq"]
    if isinstance(optimizer, torch.optim.SGD):
        keys = ["momentum_buffer"] if optimizer.defaults["momentum"] > 0 else []
    expected = {
        f"{key}/{name}": ((), "float32")
        if key == "step"
        else (tuple(parameter.shape), str(parameter.dtype).removeprefix("torch."))
        for name, parameter in model.named_parameters()
        for key in keys
    }
    if {name: (array.shape, str(array.dtype)) for name, array in arrays.items()} != expected:
        raise DataError(f"{path}: the state of its optimizer does not fit the model")
    return [
        (
            parameter,
            {
                # AdamW counts its steps on the CPU.
                key: torch.from_numpy(arrays[f"{key}/{name}"]).to(
                    "cpu" if key == "step" else parameter.device
                )
                for key in keys
            },
        )
        for name, parameter in model.named_parameters()
    ]
