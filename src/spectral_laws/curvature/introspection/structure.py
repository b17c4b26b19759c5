"""Which layers' exact Hessian block equals their Gauss-Newton block, read off the autograd graph.

The Hessian of L = mean_i l_i(z_i(W)) in one layer's weight W is the Gauss-Newton block plus
sum_i <dl_i/dz_i, d^2 z_i/dW^2>. The second term vanishes if the logits z are piecewise linear in W,
which holds if W enters once and every operation on the way to the logits is piecewise linear in
what depends on W. Operations that are not known to be so count as curved: the safe side, where the
exact method is used.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.introspection.layers import (
    WEIGHTED,
    Call,
    Layer,
    Recording,
    check_mode,
    differentiable_attention,
    differentiable_weights,
    find_layers,
    recorded_calls,
)
from spectral_laws.curvature.introspection.linearity import curved_operations
from spectral_laws.errors import NumericalError

_COUPLED = (
    "the logits of one sample depend on another sample (normalisation by the batch's own "
    "statistics?): the loss is no mean over samples, and its curvature is not defined here"
)
RANDOM = (
    "two forward passes over the same samples gave different logits: the model is random "
    "(functional dropout?), its curvature is not defined"
)
"""Why a model is refused that does not repeat itself."""
_UNREACHED = "the first two samples do not reach it"


@dataclass(frozen=True)
class LayerStructure:
    """What stands between a layer and the Gauss-Newton pass; None where nothing does."""

    curved: str | None  # why the exact Hessian block may differ from the Gauss-Newton block
    unsupported: str | None  # why the reverse Gauss-Newton pass cannot be run for this layer

    @property
    def obstacle(self) -> str | None:
        """The reason why ``method="auto"`` measures this layer by double backpropagation."""
        return self.unsupported or self.curved


@dataclass(frozen=True)
class ModelStructure:
    """Structure of every measured layer, the head's name (if measured), and one sample's logits."""

    layers: dict[str, LayerStructure]
    head: str | None
    output_shape: tuple[int, ...]

    @property
    def n_classes(self) -> int:
        """C."""
        return self.output_shape[-1]


def gauss_newton_obstacles(
    model: nn.Module, inputs: Tensor, *, layers: Sequence[str] | None = None
) -> dict[str, str]:
    """Layers whose exact Hessian block is not known to equal the Gauss-Newton block, and why.

    An empty result says that the reverse Gauss-Newton pass is exact for every layer. ``inputs`` and
    ``layers`` are as :func:`spectral_laws.curvature.measure_directional_curvature` takes them; the
    first two samples are used.
    """
    check_mode(model)
    with differentiable_attention():
        structure = analyse_structure(model, find_layers(model, layers), inputs)
    return {name: s.obstacle for name, s in structure.layers.items() if s.obstacle is not None}


def analyse_structure(
    model: nn.Module, layers: Sequence[Layer], inputs: Tensor, *, uneven: Collection[str] = ()
) -> ModelStructure:
    """Structure of a model, from one pass of two samples.

    ``uneven`` names layers that not every sample of the batch reaches once, as experts.
    The head is the last layer called, if it is linear with one row per class.
    """
    probe = inputs[:2].detach().clone()
    if probe.is_floating_point():
        probe.requires_grad_(True)
    with differentiable_weights(model, layers):
        watched = [Layer(n, m) for n, m in model.named_modules() if isinstance(m, WEIGHTED)]
        with recorded_calls(watched) as recording:
            logits = model(probe.clone())
        if logits.shape[:1] != probe.shape[:1] or logits.dim() not in (2, 3):
            raise ValueError(
                f"the model must return logits (B, C) or (B, T, C); {tuple(probe.shape)} gave "
                f"{tuple(logits.shape)}"
            )
        if logits.grad_fn is None:
            raise ValueError("layers: none of them influences the logits")
        check_finite("logits of the first samples", logits.detach().double().cpu().numpy())
        curved, uses, reduced = curved_operations(
            logits.grad_fn, [layer.weight for layer in layers]
        )
        if reduced is not None:
            raise ValueError(
                f"the forward pass computes in half precision ({reduced}; autocast inside it?), "
                "which has too few digits for a rank; measure it in float32 or float64"
            )
        calls = {layer.name: recording.calls.get(layer.name, []) for layer in layers}
        leaks = _leaks_between_samples(logits, probe, calls)
        _check_uncoupled(model, probe, logits.detach())
    structures: dict[str, LayerStructure] = {}
    for layer, reason, n_uses in zip(layers, curved, uses, strict=True):
        if n_uses == 0:
            structures[layer.name] = LayerStructure(_UNREACHED, _UNREACHED)
            continue
        unsupported = _unsupported(layer, calls[layer.name], n_uses, len(probe))
        if unsupported is None and layer.name in leaks:
            unsupported = "the first axis of its output is not the sample"
        if unsupported is None and layer.name in uneven:
            unsupported = "not every sample reaches it once"
        if reason is not None:
            reason = f"{reason} after it is not known to be piecewise linear"
        structures[layer.name] = LayerStructure(reason, unsupported)
    head = _head(layers, recording, n_classes=logits.shape[-1])
    return ModelStructure(structures, head, tuple(logits.shape[1:]))


def _head(layers: Sequence[Layer], recording: Recording, *, n_classes: int) -> str | None:
    """The layer called last, if it is linear with one row per class."""
    for layer in layers:
        if recording.order[-1:] == [layer.name] and isinstance(layer.module, nn.Linear):
            return layer.name if layer.matrix_shape[0] == n_classes else None
    return None


def _leaks_between_samples(logits: Tensor, probe: Tensor, calls: dict[str, list[Call]]) -> set[str]:
    """Layers in which row 1 and beyond of the output influences the first sample's logits."""
    if len(probe) < 2:
        return set()
    single = {
        name: found[0].edge
        for name, found in calls.items()
        if len(found) == 1 and found[0].edge is not None and found[0].output_shape[0] == len(probe)
    }
    sources: list[Tensor | GradientEdge] = [*single.values()]
    if probe.requires_grad:
        sources.append(probe)
    if not sources:
        return set()
    # Unequal weights: logits that sum to a constant would hide everything.
    first = logits[0].flatten()
    weights = torch.arange(1, len(first) + 1, dtype=logits.dtype, device=logits.device)
    gradients = torch.autograd.grad(
        first @ weights,
        sources,  # type: ignore[arg-type]  # the two kinds may be mixed
        allow_unused=True,
    )
    leaking = [g is not None and bool(g[1:].any()) for g in gradients]
    if probe.requires_grad and leaking[-1]:
        raise ValueError(_COUPLED)
    return {name for name, leak in zip(single, leaking, strict=False) if leak}


def _check_uncoupled(model: nn.Module, probe: Tensor, logits: Tensor) -> None:
    """Beside a copy or its mirror image a sample must give the logits that it gave before."""
    tolerance = 1e3 * torch.finfo(logits.dtype).eps * logits.abs().max()

    def differ(a: Tensor, b: Tensor) -> bool:
        return not bool((a - b).abs().max() <= tolerance)

    with torch.no_grad():
        if differ(model(probe.detach().clone()), logits):
            raise NumericalError(RANDOM)
        for sample, expected in zip(probe.detach(), logits, strict=True):
            for neighbour in (sample, sample.flip(-1)):
                if differ(model(torch.stack([sample, neighbour]))[0], expected):
                    raise ValueError(_COUPLED)


def _has_usual_forward(own: type[nn.Module]) -> bool:
    """Whether a class computes what the Linear, Conv1d or Conv2d that it is, or inherits, does."""
    return own.forward is nn.Linear.forward or any(
        issubclass(own, kind)
        and own.forward is kind.forward
        and own._conv_forward is kind._conv_forward
        for kind in (nn.Conv1d, nn.Conv2d)
    )


def _unsupported(layer: Layer, calls: list[Call], n_uses: int, n_samples: int) -> str | None:
    """Why t = sum over positions of (u . delta)(v . a) would not be this layer's Jacobian."""
    module = layer.module
    own = type(module)
    if layer.attribute != "weight":
        return f"it is a parameter that {own.__name__} uses itself"
    if not _has_usual_forward(own) or "forward" in vars(module):
        return f"{own.__name__} has a forward pass of its own"
    # Those of the recording are gone by now, so these are the caller's.
    if module._forward_hooks or module._forward_pre_hooks:
        return "it has forward hooks, which may change its input or output"
    if len(calls) != 1 or n_uses != 1:
        return f"its weight is used {n_uses} times in {len(calls)} calls of the layer"
    call = calls[0]
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        expected = 2 + len(module.kernel_size)
    else:
        expected = max(2, len(call.output_shape))
    if call.output_shape[0] != n_samples or len(call.output_shape) != expected:
        return "the first axis of its output is not the sample"
    return None
