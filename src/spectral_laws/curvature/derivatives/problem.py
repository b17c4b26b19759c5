"""What is measured: a model, its layers and a batch, and what must hold of them together."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.introspection.layers import (
    Layer,
    check_mode,
    chunks,
    differentiable_attention,
    find_layers,
    recorded_calls,
)
from spectral_laws.curvature.introspection.structure import (
    RANDOM,
    ModelStructure,
    analyse_structure,
)
from spectral_laws.errors import NumericalError

_ROUNDING = 100
"""Two passes over the same samples may differ by so many machine epsilons of the largest logit: on
a CPU they are equal to the bit, on a GPU some sums are made in any order."""


@dataclass(frozen=True)
class Batch:
    """A model, and the samples (B, ...) whose cross-entropy with ``targets`` is differentiated."""

    model: nn.Module
    inputs: Tensor
    targets: Tensor
    chunk_size: int
    label_smoothing: float = 0.0

    def chunks(self, label: str | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Pieces of at most ``chunk_size`` samples; progress is printed under ``label``."""
        return chunks(self.inputs, self.targets, self.chunk_size, label=label)

    def logits(self, inputs: Tensor) -> Tensor:
        """The model's logits of some of the samples, which it may change in place."""
        found: Tensor = self.model(inputs.clone())
        return found

    def summed_loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of some of the samples, see :func:`summed_loss`."""
        return summed_loss(logits, targets, label_smoothing=self.label_smoothing)


class NoSecondDerivativeError(ValueError):
    """An operation of the forward pass that torch can differentiate only once."""


@contextmanager
def second_derivatives() -> Iterator[None]:
    """Inside, an operation without a second derivative is a NoSecondDerivativeError naming it."""
    try:
        yield
    except RuntimeError as error:
        found = re.search(r"derivative for \W*(aten::)?_?(\w+)\W* is not implemented", str(error))
        if found is None:
            raise
        name = found[2].removesuffix("_backward")
        raise NoSecondDerivativeError(
            f"torch has no second derivative of {name}, which the model uses: the curvature of the "
            "layers before it cannot be measured; name the others as layers"
        ) from error


@dataclass(frozen=True)
class Problem:
    """A batch, and the layers and structure of its model."""

    batch: Batch
    layers: list[Layer]
    structure: ModelStructure


def check_problem(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    layers: Sequence[str] | None,
    chunk_size: int,
    label_smoothing: float,
) -> Problem:
    """What every measurement of a network needs, or refuses.

    Arguments, and what is refused, are those of ``measure_directional_curvature``.
    """
    _check_arguments(inputs, targets, chunk_size=chunk_size, label_smoothing=label_smoothing)
    check_mode(model)
    found = find_layers(model, layers)
    _check_precision(found)
    batch = Batch(model, inputs, targets, chunk_size, label_smoothing)
    with differentiable_attention():
        uneven = _check_repeatable(batch, found)
        structure = analyse_structure(model, found, inputs, uneven=uneven)
    _check_targets(targets, structure)
    return Problem(batch, found, structure)


def _check_arguments(
    inputs: Tensor, targets: Tensor, *, chunk_size: int, label_smoothing: float
) -> None:
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be positive, found {chunk_size}")
    if targets.dim() not in (1, 2) or len(targets) != len(inputs) or targets.numel() == 0:
        raise ValueError(
            f"inputs (B, ...) and targets (B,) or (B, T) do not match: {tuple(inputs.shape)} and "
            f"{tuple(targets.shape)}"
        )
    if targets.dtype != torch.int64:
        raise ValueError(f"targets must be class indices of dtype int64, found {targets.dtype}")
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing must lie in [0, 1), found {label_smoothing}")


def _check_precision(layers: Sequence[Layer]) -> None:
    for layer in layers:
        if layer.weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"layers: {layer.name!r} has weights of dtype {layer.weight.dtype}; convert the "
                "model and its inputs to float32 or float64"
            )
        if torch.is_autocast_enabled(layer.weight.device.type):
            raise ValueError("autocast is active; measure outside of it, in float32 or float64")


def _check_repeatable(batch: Batch, layers: Sequence[Layer]) -> set[str]:
    """Refuse a model that gives other logits when it sees the same samples again.

    Returns the names of the layers that some sample does not reach, or reaches more than once.
    """
    uneven: set[str] = set()
    with torch.no_grad():
        for x, _ in batch.chunks():
            with recorded_calls(layers) as recording:
                first = batch.logits(x)
            second = batch.logits(x)
            for layer in layers:
                calls = recording.calls.get(layer.name, [])
                if len(calls) != 1 or calls[0].output_shape[0] != len(x):
                    uneven.add(layer.name)
            allowed = _ROUNDING * torch.finfo(first.dtype).eps * first.abs().max()
            # NaN is found where gradients are taken, and called by its name there.
            if first.isfinite().all() and (first - second).abs().max() > allowed:
                raise NumericalError(RANDOM)
    return uneven


def _check_targets(targets: Tensor, structure: ModelStructure) -> None:
    expected = (len(targets), *structure.output_shape[:-1])
    if tuple(targets.shape) != expected:
        raise ValueError(
            f"targets have shape {tuple(targets.shape)}, but the logits need {expected}: one class "
            f"for each row of {structure.n_classes} logits"
        )
    if int(targets.min()) < 0 or int(targets.max()) >= structure.n_classes:
        raise ValueError(f"targets must lie in 0..{structure.n_classes - 1}")


def summed_loss(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Sum of the cross-entropies of (..., C) logits with (...) targets, formed in float64.

    In float32 the probability 1 - p_y of all wrong classes would be lost in rounding as soon as
    the network is confident, and with it the gradient's leading digits.
    """
    return cross_entropy(
        logits.double().flatten(0, -2),
        targets.flatten(),
        reduction="sum",
        label_smoothing=label_smoothing,
    )


def loss_gradient(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Gradient of :func:`summed_loss` in the logits, p - (1 - s) one_hot(y) - s / C."""
    gradient = torch.softmax(logits.detach().double(), dim=-1) - label_smoothing / logits.shape[-1]
    hit = gradient.new_full((*targets.shape, 1), label_smoothing - 1)
    return gradient.scatter_add_(-1, targets.unsqueeze(-1), hit).to(logits.dtype)
