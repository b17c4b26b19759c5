"""The race: every method is tuned with the same budget, then trained from several seeds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.device import find_device
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.optimizers.measured import check_layers, layer_means
from spectral_laws.optimizers.runs import Choice, n_batches, run_training, split_samples
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining


@dataclass(frozen=True)
class RaceTable:
    """A table of trainings, and the files that keep them until it is written."""

    table: pd.DataFrame  # see the function that makes it
    kept: tuple[Path, ...]  # files of finished trainings
    # Seconds, apart, because they differ between runs.
    times: pd.DataFrame = field(default_factory=pd.DataFrame)

    def discard(self) -> None:
        """Remove the files of finished trainings."""
        for path in self.kept:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Task:
    """What all methods of a race share.

    Attributes:
        name: of the race.
        model: settings of the network.
        model_name: of the network, in the table of exponents.
        samples: of its data set.
        training: sizes, epochs, batch size.
        seed: root of the random streams.
        device: ``cpu`` or ``cuda``.
        scratch: folder of finished trainings; None keeps none.
        kept: files that were written there.
    """

    name: str
    model: Model
    model_name: str
    samples: Samples
    training: RaceTraining
    seed: int
    device: str = "cpu"
    scratch: Path | None = None
    kept: list[Path] = field(default_factory=list)

    def network(self, seed: int) -> nn.Module:
        """The network with initial weights of ``seed``."""
        if self.samples.is_language != (self.model.architecture == "gpt2"):
            raise DataError(f"{self.model.architecture} cannot read the samples of {self.name!r}")
        return build_model(self.model, self.samples, seed=seed)

    def run(self, choice: Choice, stream: str, replicate: int, *, validate: bool) -> pd.DataFrame:
        """One training; see :func:`spectral_laws.optimizers.runs.run_training`.

        Initial weights and order of the samples come from the stream (seed, stream, replicate):
        the same for every method.
        """
        tested, validated = split_samples(self.samples, self.training)
        seed = rng.torch_seed(self.seed, stream, replicate)
        history, path = run_training(
            self.network(seed),
            validated if validate else tested,
            self.training,
            choice,
            seed=seed,
            device=find_device(self.device),
            scratch=self.scratch,
        )
        if path is not None:
            self.kept.append(path)
        return history


def tune_method(
    task: Task, method: Method, exponents: pd.DataFrame | None, *, name: str, replicates: int = 1
) -> RaceTable:
    """Choose learning rate and weight decay by trainings that are tested on validation samples.

    First every learning rate with the first weight decay, then the other weight decays with the
    best learning rate, each judged by ``replicates`` trainings. All methods are tuned from the same
    initial weights, which no later training starts from. The best has the highest accuracy and, of
    these, the lowest loss; with language models the lowest loss. ``exponents`` is the table of
    ``fit_exponents``, for measured alphas.

    Raises:
        DataError: if there are no measured alphas, or too few samples.
        NumericalError: if every training diverged.
    """
    alphas = method_alphas(task, method, exponents)

    def validate(learning_rate: float, weight_decay: float) -> dict[str, Any]:
        choice = Choice(method, learning_rate, weight_decay, alphas)
        runs = [task.run(choice, "race tuning", r, validate=True) for r in range(replicates)]
        last = pd.DataFrame([run.iloc[-1] for run in runs])
        diverged = bool(last["diverged"].any())
        return {
            "race": task.name,
            "method": name,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "validation_loss": math.nan if diverged else last["test_loss"].mean(),
            "validation_accuracy": last["test_accuracy"].mean(),
            "diverged": diverged,
            "trainings": replicates,
            "seconds": sum(run["seconds"].sum() for run in runs),
        }

    def best(rows: list[dict[str, Any]]) -> int:
        return _best(pd.DataFrame(rows), by_loss=_is_language(task.samples), name=name)

    first, *others = method.weight_decays
    rows = [validate(learning_rate, first) for learning_rate in method.learning_rates]
    rate = rows[best(rows)]["learning_rate"]
    rows += [validate(rate, weight_decay) for weight_decay in others]
    table = pd.DataFrame(rows)
    table["chosen"] = table.index == best(rows)
    times = table[["race", "method", "learning_rate", "weight_decay", "seconds"]]
    return RaceTable(table.drop(columns="seconds"), tuple(task.kept), times)


def train_method(
    task: Task,
    method: Method,
    tuning: pd.DataFrame,
    exponents: pd.DataFrame | None,
    *,
    name: str,
    replicates: Iterable[int],
) -> RaceTable:
    """Train a tuned method from several seeds, and test it after every epoch.

    ``tuning`` is the table of :func:`tune_method`, ``exponents`` that of ``fit_exponents``, for
    measured alphas. Replicate r starts from the same weights and sees the samples in the same order
    under every method.

    Raises:
        DataError: if there are no measured alphas, ``tuning`` has no choice, or too few samples.
    """
    learning_rate, weight_decay = chosen_values(tuning, task.name, name)
    choice = Choice(method, learning_rate, weight_decay, method_alphas(task, method, exponents))
    parts: list[pd.DataFrame] = []
    for replicate in replicates:
        history = task.run(choice, "race", replicate, validate=False)
        place: dict[str, Any] = {"race": task.name, "method": name, "seed": replicate}
        history = history.assign(
            **place,
            task=task.samples.task,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_test=int(task.samples.test_targets.size),
            model=task.model_name,
            train_size=task.training.train_size,
            steps=task.training.epochs * n_batches(task.training),
        )
        parts.append(history)
    runs = pd.concat(parts, ignore_index=True)
    key = ["race", "method", "seed", "epoch"]
    values = ["learning_rate", "weight_decay", "train_loss", "test_loss", "test_accuracy"]
    table = runs[
        ["race", "task", "model", "train_size", "steps", *key[1:], *values, "diverged", "n_test"]
    ]
    return RaceTable(table, tuple(task.kept), runs[[*key, "seconds"]])


def chosen_values(tuning: pd.DataFrame, race: str, method: str) -> tuple[float, float]:
    """Learning rate and weight decay that a method was tuned to in a race."""
    missing = {"race", "method", "learning_rate", "weight_decay", "chosen"} - set(tuning.columns)
    if missing:
        raise DataError(f"tuning table: no column {', '.join(sorted(missing))}")
    rows = tuning[(tuning["race"] == race) & (tuning["method"] == method)]
    rows = rows[rows["chosen"].astype(bool)]
    if len(rows) != 1:
        raise DataError(
            f"tuning table: {len(rows)} choices of method {method!r} in race {race!r}, not one"
        )
    return float(rows["learning_rate"].iloc[0]), float(rows["weight_decay"].iloc[0])


def method_alphas(
    task: Task, method: Method, exponents: pd.DataFrame | None
) -> dict[str, float] | None:
    """Measured exponent of each layer, at least 0, for ``alpha: measured``, else None."""
    if method.alpha != "measured":
        return None
    if exponents is None:
        raise DataError("alpha is measured, and there is no table of exponents")
    means = layer_means(exponents, task.model_name, "alpha")
    check_layers(task.network(0), means, model=task.model_name)
    return {layer: max(alpha, 0.0) for layer, alpha in means.items()}


def _is_language(samples: Samples) -> bool:
    return samples.task == "language_modelling"


def _best(table: pd.DataFrame, *, by_loss: bool, name: str) -> int:
    """Index of the row that is chosen."""
    finished = table[~table["diverged"]]
    if finished.empty:
        raise NumericalError(
            f"method {name}: each of {len(table)} candidates has a diverged training"
        )
    keys = ["validation_loss"] if by_loss else ["validation_accuracy", "validation_loss"]
    order = finished.sort_values(keys, ascending=[key == "validation_loss" for key in keys],
                                 kind="stable")  # fmt: skip
    return int(order.index[0])
