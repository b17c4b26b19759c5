"""One training of the race: from initial weights to the last epoch, timed."""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from spectral_laws import rng
from spectral_laws.artifacts import read_table, write_table
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.state import check_batches, check_scratch, result_key
from spectral_laws.curvature.training.train import cross_entropy_of, evaluate, one_cycle
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.optimizers.methods import ScheduledOptimizer, build_optimizer
from spectral_laws.provenance import Provenance
from spectral_laws.settings.optimizers import Method, RaceTraining
from spectral_laws.tables.schemas import load_schema

logger = logging.getLogger(__name__)

LinAlgError = torch.linalg.LinAlgError  # type: ignore[attr-defined]

_FORMAT = 1  # of the scratch file; raise it when its meaning changes


@dataclass(frozen=True)
class Choice:
    """A method with its hyperparameters, and what it takes of the measured exponents, by layer."""

    method: Method
    learning_rate: float
    weight_decay: float
    alphas: Mapping[str, float] | None = None
    layer_rates: Mapping[str, float] | None = None


def split_samples(samples: Samples, training: RaceTraining) -> tuple[Samples, Samples]:
    """The training part with the test part, and the training part with the validation part."""
    end = training.train_size + training.validation_size
    if end > len(samples.train_targets):
        raise DataError(
            f"train_size {training.train_size} and validation_size {training.validation_size} need "
            f"{end} training samples, the data has {len(samples.train_targets)}"
        )
    train = slice(0, training.train_size)
    rest = slice(training.train_size, end)
    parts = (
        (samples.test_inputs, samples.test_targets),
        (samples.train_inputs[rest], samples.train_targets[rest]),
    )
    tested, validated = (
        Samples(
            train_inputs=samples.train_inputs[train],
            train_targets=samples.train_targets[train],
            test_inputs=inputs,
            test_targets=targets,
            n_classes=samples.n_classes,
            n_tokens=samples.n_tokens,
        )
        for inputs, targets in parts
    )
    return tested, validated


def n_batches(training: RaceTraining) -> int:
    """Steps of an epoch."""
    return math.ceil(training.train_size / training.batch_size)


def run_training(
    model: nn.Module,
    samples: Samples,
    training: RaceTraining,
    choice: Choice,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    scratch: Path | None = None,
) -> tuple[pd.DataFrame, Path | None]:
    """Train ``model`` in place with one method, and test it after every epoch.

    Learning rate by :func:`spectral_laws.curvature.training.train.one_cycle`; no label smoothing,
    no early stop. The order of the samples depends on ``seed`` alone, so methods are paired. A
    training whose loss or gradients are no longer finite has diverged: it is not trained further,
    and its remaining epochs report the accuracy it was left with.

    With ``scratch`` the result of a finished training is kept there under a hash of everything it
    depends on, and read instead of training again. A file that is damaged, or is no such result, is
    reported and not used. The model has no random layers. The second result is the file in
    ``scratch``.

    Returns:
        One row per epoch: epoch, train_loss (mean over its steps), test_loss, test_accuracy,
        diverged, seconds (of its steps, wall clock); and the file in ``scratch``.
    """
    check_batches(model, training.train_size, training.batch_size)
    model.to(device)
    kept: Path | None = None
    if scratch is not None:
        check_scratch(scratch)
        key = _key(model, samples, training, choice, seed=seed, device=str(device))
        kept = scratch / f"race-{key}.parquet"
        if kept.exists():
            try:
                return _read_kept(kept, training), kept
            except DataError as error:
                logger.warning("saved training not used, it is trained again: %s", error)
                kept.unlink(missing_ok=True)
    history = _train(model, samples, training, choice, seed=seed, device=device)
    if kept is not None:
        provenance = Provenance({"seed": seed}, seed, str(device))
        write_table(history, kept, provenance, "optimizers/training")
    return history, kept


def _read_kept(path: Path, training: RaceTraining) -> pd.DataFrame:
    """The result of a finished training."""
    table = read_table(path)
    load_schema("optimizers/training").check(table, source=path)
    if table["epoch"].tolist() != list(range(1, training.epochs + 1)):
        raise DataError(f"{path}: not the epochs 1 to {training.epochs} of a training")
    return table


def _train(
    model: nn.Module,
    samples: Samples,
    training: RaceTraining,
    choice: Choice,
    *,
    seed: int,
    device: torch.device | str,
) -> pd.DataFrame:
    optimizer = build_optimizer(
        model,
        choice.method,
        weight_decay=choice.weight_decay,
        alphas=choice.alphas,
        layer_rates=choice.layer_rates,
    )
    inputs, targets, test_inputs, test_targets = (
        torch.from_numpy(array).to(device)
        for array in (
            *(samples.train_inputs, samples.train_targets),
            *(samples.test_inputs, samples.test_targets),
        )
    )
    per_epoch = n_batches(training)
    last_step = training.epochs * per_epoch - 1
    rows = []
    diverged = False
    for epoch in range(1, training.epochs + 1):
        order = rng.generator(seed, "visiting order", epoch).permutation(len(targets))
        rates = [
            choice.learning_rate * one_cycle(((epoch - 1) * per_epoch + i) / max(last_step, 1))
            for i in range(per_epoch)
        ]
        started = time.perf_counter()
        loss = math.nan
        if not diverged:
            batches = np.array_split(order, per_epoch)
            loss = _train_epoch(model, optimizer, inputs, targets, batches, rates)
            if inputs.is_cuda:
                torch.cuda.synchronize()  # the last update belongs to the time
        seconds = time.perf_counter() - started
        test_loss, accuracy = evaluate(model, test_inputs, test_targets)
        diverged = diverged or not (math.isfinite(loss) and math.isfinite(test_loss))
        rows.append(
            {
                "epoch": epoch,
                "train_loss": math.nan if diverged else loss,
                "test_loss": math.nan if diverged else test_loss,
                "test_accuracy": accuracy,
                "diverged": diverged,
                "seconds": seconds,
            }
        )
    return pd.DataFrame(rows)


def _train_epoch(
    model: nn.Module,
    optimizer: ScheduledOptimizer,
    inputs: Tensor,
    targets: Tensor,
    batches: list[np.ndarray],
    rates: list[float],
) -> float:
    """Mean loss over the samples of one epoch; NaN, and no further step, once it is not finite."""
    model.train()
    total = 0.0
    for batch, rate in zip(batches, rates, strict=True):
        chosen = torch.from_numpy(batch).to(targets.device)
        loss = cross_entropy_of(model(inputs[chosen]), targets[chosen])
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item() * len(batch)
        if not math.isfinite(total):
            return math.nan
        try:
            optimizer.step(rate)
        except (NumericalError, LinAlgError):  # a gradient, or a matrix made of it, overflowed
            return math.nan
    return total / len(targets)


def _key(
    model: nn.Module,
    samples: Samples,
    training: RaceTraining,
    choice: Choice,
    *,
    seed: int,
    device: str,
) -> str:
    """Hash of everything that the result of a training depends on."""
    facts = [_FORMAT, version("pytorch-optimizer"), training.model_dump(mode="json")]
    facts += [choice.method.model_dump(mode="json"), choice.learning_rate, choice.weight_decay]
    facts += [dict(choice.alphas or {}), dict(choice.layer_rates or {})]
    return result_key(facts, model, samples, seed=seed, device=device)
