"""Exact curvatures by double backpropagation: the reference, and the way for smooth networks."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectral_laws.curvature.gradients import SingularDirections, summed_loss
from spectral_laws.curvature.layers import Layer, chunks, differentiable_weights


def exact_curvatures(
    model: nn.Module,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    inputs: Tensor,
    targets: Tensor,
    *,
    chunk_size: int,
    label: str | None = None,
) -> tuple[list[Tensor], float]:
    """Second derivatives h_k = d^2/dt^2 L(W + t u_k v_k^T) at t = 0 of the mean cross-entropy L.

    Per chunk one graph of all layers' gradients is kept, and every direction costs one backward
    pass through it, down to that layer's weight alone: h_k = <d_k, d/dW <dL/dW, d_k>>.

    Returns:
        Per layer the (K,) float64 curvatures (of any sign), and the mean loss of the batch.
    """
    matrices = [_matrices(layer, found) for layer, found in zip(layers, directions, strict=True)]
    totals = [torch.zeros(len(d), dtype=torch.float64, device=d.device) for d in matrices]
    weights = [layer.weight for layer in layers]
    total_loss = 0.0
    with differentiable_weights(model, layers):
        for x, y in chunks(inputs, targets, chunk_size, label=label):
            loss = summed_loss(model(x), y)
            total_loss += loss.item()
            gradients = torch.autograd.grad(loss, weights, create_graph=True)
            for weight, gradient, total, matrix in zip(
                weights, gradients, totals, matrices, strict=True
            ):
                for k, direction in enumerate(matrix):
                    (product,) = torch.autograd.grad(
                        (gradient * direction).sum(),
                        weight,
                        retain_graph=True,
                        materialize_grads=True,
                    )
                    total[k] += (product.double() * direction.double()).sum()
    return [(total / len(targets)).cpu() for total in totals], total_loss / len(targets)


def _matrices(layer: Layer, directions: SingularDirections) -> Tensor:
    """Directions u_k v_k^T in the shape of the weight, (K, *weight.shape)."""
    products = torch.einsum("mk,nk->kmn", directions.left, directions.right)
    return products.to(layer.weight).reshape(-1, *layer.weight.shape)
