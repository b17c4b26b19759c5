"""The layers whose curvature is measured: finding them, watching them, differentiating them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from spectral_laws.progress import track

T = TypeVar("T")

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d)
"""Modules whose ``weight`` is measured."""

_PROJECTIONS = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")


@dataclass(frozen=True)
class Layer:
    """One weight: of a linear or convolutional layer, known by its module's name.

    It is treated as the matrix W of shape (n_rows, n_columns): (out, in) of a linear layer,
    (out, in / groups * kernel size) of a convolution.
    """

    # The module's name; of a weight that an ``nn.MultiheadAttention`` keeps as a bare
    # parameter, the parameter's (``attention.in_proj_weight``).
    name: str
    module: nn.Module  # owner of the weight
    attribute: str = "weight"  # the weight's name in ``module``

    @property
    def weight(self) -> Tensor:
        """The weight as stored by the module."""
        weight: Tensor = getattr(self.module, self.attribute)
        return weight

    @property
    def parameter_name(self) -> str:
        """What ``model.get_parameter`` takes."""
        bare = self.attribute != "weight"
        return self.name if bare else f"{self.name}.weight".lstrip(".")

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

    def reached(
        self, layers: Sequence[Layer], work: Sequence[T]
    ) -> Iterator[tuple[T, Call, GradientEdge]]:
        """What of ``work``, one item per layer, belongs to a call that carries a gradient."""
        for layer, item in zip(layers, work, strict=True):
            for call in self.calls.get(layer.name, ()):  # none if no sample reaches the layer
                if call.edge is not None:
                    yield item, call, call.edge


def find_layers(model: nn.Module, names: Sequence[str] | None) -> list[Layer]:
    """The layers called ``names``, or all of them in order of registration.

    Layers are ``nn.Linear``, ``nn.Conv1d``, ``nn.Conv2d`` and the projections that
    ``nn.MultiheadAttention`` keeps as parameters (its ``out_proj`` is a Linear). A weight that
    several modules share is listed once, under the first of them. An ``nn.Embedding`` is no layer;
    a Linear that shares its weight is one, with all uses of the weight.
    """
    known = {layer.name: layer for layer in _all_layers(model)}
    if names is None:
        names = list(known)
        if not names:
            raise ValueError("the model has no Linear, Conv1d or Conv2d layer to measure")
    layers: list[Layer] = []
    seen: set[int] = set()
    for name in names:
        layer = known.get(name)
        if layer is None:
            module = dict(model.named_modules()).get(name)
            found = "no module" if module is None else f"a {type(module).__name__}"
            raise ValueError(
                f"layers: {name!r} is {found}, expected a Linear, Conv1d or Conv2d layer"
            )
        if layer.attribute not in layer.module._parameters:
            raise ValueError(f"layers: the weight of {name!r} is computed from other parameters")
        if layer.weight._backward_hooks:
            raise ValueError(
                f"layers: the weight of {name!r} has a hook, which may change gradients"
            )
        if id(layer.weight) not in seen:
            seen.add(id(layer.weight))
            layers.append(layer)
    return layers


def _all_layers(model: nn.Module) -> Iterator[Layer]:
    for name, module in model.named_modules():
        if isinstance(module, WEIGHTED):
            yield Layer(name, module)
        elif isinstance(module, nn.MultiheadAttention):
            for attribute in _PROJECTIONS:
                if getattr(module, attribute) is not None:
                    yield Layer(f"{name}.{attribute}".lstrip("."), module, attribute)


def check_mode(model: nn.Module) -> None:
    """Refuse a model whose output is random or couples samples, or whose gradients are changed."""
    for name, module in model.named_modules():
        label = f"{name or 'the model'} ({type(module).__name__})"
        if module._backward_hooks or module._backward_pre_hooks:
            raise ValueError(f"{label} has a backward hook, which may change gradients; remove it")
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
def differentiable_attention() -> Iterator[None]:
    """Attention without fused kernels, which have no second derivative, and without the fast path.

    ``nn.MultiheadAttention`` and ``nn.TransformerEncoderLayer`` take that path where they think
    that no gradient is needed; it is one operation without a derivative.
    """
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextmanager
def recorded_calls(layers: Sequence[Layer]) -> Iterator[Recording]:
    """Record input and output edge of every call of ``layers`` inside the block.

    Calls are those of the layers' modules; weights that are bare parameters have none.
    """
    recording = Recording()
    modules = {layer.name: layer.module for layer in layers if layer.attribute == "weight"}
    names = {id(module): name for name, module in modules.items()}

    def record(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor
    ) -> None:
        # Returns None on purpose: a value would replace the layer's output.
        source = args[0] if args else kwargs["input"]
        edge = get_gradient_edge(output) if output.requires_grad else None
        call = Call(source.detach(), output.shape, edge)
        recording.calls.setdefault(names[id(module)], []).append(call)

    handles = [m.register_forward_hook(record, with_kwargs=True) for m in modules.values()]
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
