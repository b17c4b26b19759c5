"""Exact curvatures: by tangents, or by double backpropagation, the reference."""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor

from spectral_laws.curvature.derivatives.gradients import (
    SingularDirections,
    direction_matrices,
)
from spectral_laws.curvature.derivatives.problem import Batch, second_derivatives
from spectral_laws.curvature.derivatives.tangent import tangent_curvatures
from spectral_laws.curvature.derivatives.tape import TapeError
from spectral_laws.curvature.introspection.layers import Layer, differentiable_weights

_log = logging.getLogger(__name__)


def exact_curvatures(
    batch: Batch,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    *,
    label: str | None = None,
) -> tuple[list[Tensor], float]:
    """Second derivatives h_k = d^2/dt^2 L(W + t u_k v_k^T) at t = 0 of the mean cross-entropy L.

    By :func:`tangent_curvatures`; a model that it cannot take apart is measured by
    :func:`double_backpropagation`, with a warning in the log that says why. Returned are the (K,)
    float64 curvatures per layer, and the mean loss of the batch.
    """
    try:
        found = tangent_curvatures(batch, layers, directions, label=label)
    except TapeError as error:
        _log.warning("measuring by double backpropagation, which is slower: %s", error)
        return double_backpropagation(batch, layers, directions, label=label)
    return found.exact, found.loss


def double_backpropagation(
    batch: Batch,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    *,
    label: str | None = None,
) -> tuple[list[Tensor], float]:
    """The same, by autograd alone: h_k = <d_k, d/dW <dL/dW, d_k>>.

    Per chunk one graph of all layers' gradients is kept, and every direction costs one backward
    pass through it, down to that layer's weight alone.
    """
    matrices = [
        direction_matrices(layer, found) for layer, found in zip(layers, directions, strict=True)
    ]
    totals = [torch.zeros(len(d), dtype=torch.float64, device=d.device) for d in matrices]
    weights = [layer.weight for layer in layers]
    total_loss = 0.0
    with differentiable_weights(batch.model, layers), second_derivatives():
        for x, y in batch.chunks(label):
            loss = batch.summed_loss(batch.logits(x), y)
            total_loss += loss.item()
            gradients = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
            for weight, gradient, total, matrix in zip(
                weights, gradients, totals, matrices, strict=True
            ):
                if gradient is None:
                    continue
                for k, direction in enumerate(matrix):
                    (product,) = torch.autograd.grad(
                        (gradient * direction).sum(),
                        weight,
                        retain_graph=True,
                        materialize_grads=True,
                    )
                    total[k] += (product.double() * direction.double()).sum()
    n = batch.targets.numel()
    return [(total / n).cpu() for total in totals], total_loss / n
