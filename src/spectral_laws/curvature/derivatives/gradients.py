"""Gradients of the mean cross-entropy in each layer's weight, and their singular directions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.introspection.layers import Layer, chunks, differentiable_weights


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

    def summed_loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of some of the samples, see :func:`summed_loss`."""
        return summed_loss(logits, targets, label_smoothing=self.label_smoothing)


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

    One (n_rows, n_columns) float64 matrix per layer: chunks are summed in float64.
    """
    sums = [torch.zeros_like(layer.weight, dtype=torch.float64) for layer in layers]
    total = 0.0
    weights = [layer.weight for layer in layers]
    with differentiable_weights(batch.model, layers):
        for x, y in batch.chunks(label):
            loss = batch.summed_loss(batch.model(x), y)
            parts = torch.autograd.grad(loss, weights, allow_unused=True)
            for layer, accumulated, part in zip(layers, sums, parts, strict=True):
                if part is None:
                    raise ValueError(f"layers: {layer.name!r} does not influence the logits")
                accumulated += part
            total += loss.item()
    check_finite("loss on the measurement batch", total)
    n = batch.targets.numel()
    gradients = [gradient.flatten(1) / n for gradient in sums]
    for layer, gradient in zip(layers, gradients, strict=True):
        check_finite(f"gradient of layer {layer.name}", gradient.cpu().numpy())
    return gradients, total / n


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
