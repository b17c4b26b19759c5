"""Exact and Gauss-Newton curvatures by first-order tangents pushed forwards through a tape."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spectral_laws.curvature.derivatives.gradients import (
    SingularDirections,
    direction_matrices,
)
from spectral_laws.curvature.derivatives.linearisation import LinearisedTape, linearise
from spectral_laws.curvature.derivatives.problem import Batch, loss_gradient
from spectral_laws.curvature.derivatives.tape import TapeError, record
from spectral_laws.curvature.introspection.layers import Layer, differentiable_weights

_ELEMENTS = 2**21
"""Numbers in the largest tangent (8 MB in float32): more samples at a time leave the cache."""


@dataclass(frozen=True)
class TangentCurvatures:
    """Per layer the (K,) float64 curvatures, and the mean loss of the batch.

    ``gauss_newton`` is the loss's own part, ``exact`` adds that of the operations before it (empty
    if it was not asked for).
    """

    exact: list[Tensor]
    gauss_newton: list[Tensor]
    loss: float


def tangent_curvatures(
    batch: Batch,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    *,
    second_order: bool = True,
    label: str | None = None,
) -> TangentCurvatures:
    r"""Curvatures h_k = d^2/dt^2 L(W + t d_k) at 0 of the mean cross-entropy L, d_k = u_k v_k^T.

    With dz = J_i d_k the tangent of sample i's logits (of a position's, for language),

        gauss_newton_k = (1/N) sum_i [sum_c p_ic dz_c^2 - (sum_c p_ic dz_c)^2],
        exact_k = gauss_newton_k + (1/N) sum_i sum_j <lambda_ij, D^2 f_j[dx_ij, dx_ij]>,

    the second sum running over the operations f_j of the forward pass (see ``linearisation``). It
    holds for every network and for every way in which W enters, several times included. A direction
    costs about as much as the forward pass from the layer on; memory is that of ``top_k`` tangents
    of a few samples. A forward pass that cannot be taken apart, or whose gradient found that way is
    not autograd's, raises TapeError.
    """
    matrices = [
        direction_matrices(layer, found) for layer, found in zip(layers, directions, strict=True)
    ]
    device = batch.inputs.device
    curved = [torch.zeros(len(d), dtype=torch.float64, device=device) for d in matrices]
    gauss_newton = [torch.zeros_like(total) for total in curved]
    weights = [layer.weight for layer in layers]
    few = batch.inputs[:2]  # one sample alone may lose its axis
    most = max((len(d) for d in matrices), default=1) or 1
    largest = -(-record(batch.logits, few, weights).largest // len(few))
    size = max(1, min(batch.chunk_size, _ELEMENTS // (most * largest)))
    loss = 0.0
    for x, y in replace(batch, chunk_size=size).chunks(label):
        tape = record(batch.logits, x, weights)
        logits = tape.logits.double()
        loss += batch.summed_loss(logits, y).item()
        cotangent = loss_gradient(tape.logits, y, label_smoothing=batch.label_smoothing)
        linearised = linearise(tape, cotangent, second_order=second_order)
        _check_gradients(batch, layers, linearised, x, y)
        probabilities = torch.softmax(logits, dim=-1)
        for layer, d, h, h_gn in zip(layers, matrices, curved, gauss_newton, strict=True):
            tangents, extra = linearised.push(layer.weight, d)
            h += extra
            h_gn += _logit_variance(probabilities, tangents.double())
    n = batch.targets.numel()
    gauss_newton = [total.cpu() / n for total in gauss_newton]
    exact = (
        [g + h.cpu() / n for g, h in zip(gauss_newton, curved, strict=True)] if second_order else []
    )
    return TangentCurvatures(exact, gauss_newton, loss / n)


def _logit_variance(probabilities: Tensor, tangents: Tensor) -> Tensor:
    """sum_c p_c dz_c^2 - (sum_c p_c dz_c)^2, summed over everything but the direction.

    Written as a variance, whose digits do not cancel however confident the network is.
    """
    mean = (probabilities * tangents).sum(-1, keepdim=True)
    return (probabilities * (tangents - mean).square()).flatten(1).sum(1)


def _check_gradients(
    batch: Batch,
    layers: Sequence[Layer],
    linearised: LinearisedTape,
    inputs: Tensor,
    targets: Tensor,
) -> None:
    """Compare the gradients of a chunk with autograd's, which the tape must reproduce."""
    weights = [layer.weight for layer in layers]
    with differentiable_weights(batch.model, layers):
        loss = batch.summed_loss(batch.logits(inputs), targets)
        reference = torch.autograd.grad(loss, weights, materialize_grads=True, allow_unused=True)
    for layer, expected in zip(layers, reference, strict=True):
        found = linearised.gradients.get(id(layer.weight), torch.zeros_like(expected))
        # A difference in kind is of order one; rounding is not.
        tolerance = 1e-6 if expected.dtype == torch.float64 else 1e-3
        if not float((found - expected).norm()) <= tolerance * float(expected.norm()):
            raise TapeError(
                f"the gradient of {layer.name!r} differs from autograd's: a backward pass of its "
                "own, or values that are detached or random on the way"
            )
