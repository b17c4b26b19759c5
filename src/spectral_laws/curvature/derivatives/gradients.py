"""Gradients of the mean cross-entropy in each layer's weight, and their singular directions."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.problem import Batch
from spectral_laws.curvature.introspection.layers import Layer, differentiable_weights

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SingularDirections:
    """Leading part of a singular value decomposition G = U diag(values) V^T, in float64.

    ``values`` (K,) decrease, columns of ``left`` (n_rows, K) are u_k and of ``right`` (n_columns,
    K) v_k. ``rank`` is the numerical rank of G; ``n_below_rank`` of the leading directions asked
    for lie below it.
    """

    values: Tensor
    left: Tensor
    right: Tensor
    rank: int
    n_below_rank: int


def batch_gradients(
    batch: Batch, layers: Sequence[Layer], *, label: str | None = None
) -> tuple[list[Tensor], float]:
    """Gradients G = dL/dW of the mean cross-entropy L over the batch, and L itself.

    One (n_rows, n_columns) float64 matrix per layer: chunks are summed in float64. A layer that no
    sample reaches has a gradient of zeros, and a warning.
    """
    sums = [torch.zeros_like(layer.weight, dtype=torch.float64) for layer in layers]
    total, reached = 0.0, set()
    weights = [layer.weight for layer in layers]
    with differentiable_weights(batch.model, layers):
        for x, y in batch.chunks(label):
            loss = batch.summed_loss(batch.logits(x), y)
            parts = torch.autograd.grad(loss, weights, allow_unused=True)
            for layer, accumulated, part in zip(layers, sums, parts, strict=True):
                if part is not None:
                    reached.add(layer.name)
                    accumulated += part
            total += loss.item()
    for layer in layers:
        if layer.name not in reached:
            _log.warning("layer %s does not influence the logits: it has no gradient", layer.name)
    check_finite("loss on the measurement batch", total)
    n = batch.targets.numel()
    gradients = [gradient.flatten(1) / n for gradient in sums]
    for layer, gradient in zip(layers, gradients, strict=True):
        check_finite(f"gradient of layer {layer.name}", gradient.cpu().numpy())
    return gradients, total / n


def singular_directions(gradient: Tensor, *, top_k: int, eps: float) -> SingularDirections:
    """The leading min(top_k, numerical rank) singular triples of a float64 matrix.

    ``eps`` is the machine epsilon of the dtype in which the gradient was computed; singular values
    up to max(n_rows, n_columns) * eps * sigma_1 count as zero. A softmax head's gradient, for
    example, has rank at most C - 1.
    """
    left, values, right = torch.linalg.svd(gradient.cpu(), full_matrices=False)
    cut = max(gradient.shape) * eps * values[0]
    rank = int(torch.count_nonzero(values > cut))
    kept = min(top_k, rank)
    return SingularDirections(
        values=values[:kept].clone(),
        left=left[:, :kept].clone(),
        right=right[:kept].T.contiguous(),
        rank=rank,
        n_below_rank=min(top_k, len(values)) - kept,
    )


def direction_matrices(layer: Layer, directions: SingularDirections) -> Tensor:
    """Directions u_k v_k^T in the shape and dtype of the weight, (K, *weight.shape)."""
    products = torch.einsum("mk,nk->kmn", directions.left, directions.right)
    return products.to(layer.weight).reshape(-1, *layer.weight.shape)
