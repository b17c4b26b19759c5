"""The layers whose curvature is measured: finding them, watching them, differentiating them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from spectral_laws.progress import track

Pass = TypeVar("Pass")


@dataclass(frozen=True)
class Layer:
    """A linear or convolutional layer, known by its module name.

    Its weight is treated as the matrix W of shape (n_rows, n_columns): (out, in) of a linear layer,
    (out, in / groups * kh * kw) of a convolution.
    """

    name: str
    module: nn.Linear | nn.Conv2d

    @property
    def weight(self) -> Tensor:
        """The weight as stored by the module."""
        return self.module.weight

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """(n_rows, n_columns) of the flattened weight."""
        return self.weight.shape[0], self.weight[0].numel()


@dataclass(frozen=True)
class Call:
    """One use of a layer in a forward pass.

    ``edge`` is where the gradient with respect to the layer's output arrives; None if the output
    carries no gradient. It stays right when the output is changed in place afterwards.
    """

    input: Tensor
    output_shape: torch.Size
    edge: GradientEdge | None


@dataclass
class Recording:
    """The calls of every layer in one forward pass, and the order of the first calls."""

    calls: dict[str, list[Call]] = field(default_factory=dict)

    @property
    def order(self) -> list[str]:
        """Names of the called layers, by their first call."""
        return list(self.calls)


def find_layers(model: nn.Module, names: Sequence[str] | None) -> list[Layer]:
    """The layers called ``names``, or every Linear and Conv2d in order of registration.

    A weight that several modules share is listed once, under the first of them.

    Raises:
        ValueError: if a name is no Linear or Conv2d of the model, if a weight is computed from
            other parameters (``torch.nn.utils.parametrize``), or if there is no layer at all.
    """
    modules = dict(model.named_modules())
    if names is None:
        names = [n for n, m in modules.items() if isinstance(m, nn.Linear | nn.Conv2d)]
        if not names:
            raise ValueError("the model has no Linear and no Conv2d layer to measure")
    layers: list[Layer] = []
    seen: set[int] = set()
    for name in names:
        module = modules.get(name)
        if not isinstance(module, nn.Linear | nn.Conv2d):
            found = "no module" if module is None else f"a {type(module).__name__}"
            raise ValueError(f"layers: {name!r} is {found}, expected a Linear or Conv2d layer")
        if "weight" not in module._parameters:
            raise ValueError(f"layers: the weight of {name!r} is computed from other parameters")
        if id(module.weight) not in seen:
            seen.add(id(module.weight))
            layers.append(Layer(name, module))
    return layers


def check_mode(model: nn.Module) -> None:
    """Refuse a model whose output is random or couples the samples of a batch.

    Raises:
        ValueError: naming the first module that does so, and what to change.
    """
    for name, module in model.named_modules():
        label = f"{name or 'the model'} ({type(module).__name__})"
        if isinstance(module, _BatchNorm):
            if module.training:
                raise ValueError(
                    f"{label} is in train mode: batch statistics make the loss another function; "
                    "call model.eval() first"
                )
            if module.running_mean is None:
                raise ValueError(
                    f"{label} has no running statistics and normalises by the batch's own, "
                    "also in eval mode; its curvature per sample is not defined"
                )
        drops = isinstance(module, _DropoutNd) and module.p > 0
        attends = isinstance(module, nn.MultiheadAttention) and module.dropout > 0
        if module.training and (drops or attends or isinstance(module, nn.RReLU)):
            raise ValueError(f"{label} is active in train mode; call model.eval() first")


@contextmanager
def differentiable_weights(model: nn.Module, layers: Sequence[Layer]) -> Iterator[None]:
    """Let exactly the weights of ``layers`` require gradients; restore all flags afterwards.

    Freezing the rest keeps the graph lean. ``.grad`` is never written, because gradients are taken
    by ``torch.autograd.grad``.
    """
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        for layer in layers:
            layer.weight.requires_grad_(True)
        with torch.enable_grad():
            yield
    finally:
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


@contextmanager
def recorded_calls(layers: Sequence[Layer]) -> Iterator[Recording]:
    """Record input and output edge of every call of ``layers`` inside the block."""
    recording = Recording()
    names = {id(layer.module): layer.name for layer in layers}

    def record(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor
    ) -> None:
        # Returns None on purpose: a value would replace the layer's output.
        source = args[0] if args else kwargs["input"]
        edge = get_gradient_edge(output) if output.requires_grad else None
        call = Call(source.detach(), output.shape, edge)
        recording.calls.setdefault(names[id(module)], []).append(call)

    handles = [layer.module.register_forward_hook(record, with_kwargs=True) for layer in layers]
    try:
        yield recording
    finally:
        for handle in handles:
            handle.remove()


def chunks(
    inputs: Tensor, targets: Tensor, chunk_size: int, *, label: str | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Consecutive pieces of at most ``chunk_size`` samples; progress is printed under ``label``."""
    starts = range(0, len(targets), chunk_size)
    steps = starts if label is None else track(starts, total=len(starts), label=label)
    for start in steps:
        yield inputs[start : start + chunk_size], targets[start : start + chunk_size]
