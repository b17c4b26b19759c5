"""Loss curvature along the singular directions of each layer's gradient (arXiv:2606.02596)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.exact import exact_curvatures
from spectral_laws.curvature.derivatives.gauss_newton import gauss_newton_curvatures
from spectral_laws.curvature.derivatives.gradients import (
    SingularDirections,
    batch_gradients,
    singular_directions,
)
from spectral_laws.curvature.derivatives.methods import Chosen, Method, choose_methods
from spectral_laws.curvature.derivatives.problem import check_problem
from spectral_laws.curvature.introspection.layers import Layer, differentiable_attention

Kind = Literal["conv", "linear", "head"]


@dataclass(frozen=True)
class DirectionalSpectrum:
    """Curvatures h_k of the mean cross-entropy along u_k v_k^T in one layer.

    They are curvatures along given directions, not eigenvalues of the Hessian.

    Attributes:
        layer: module name; name of the parameter for the projections of nn.MultiheadAttention.
        kind: ``head`` is the linear layer that ends in the logits.
        weight_shape: shape of the weight; rows are ``weight_shape[0]``, columns the rest.
        singular_values: (K,) sigma_k of the gradient G = U S V^T, decreasing.
        directional_curvature: (K,) h_k = d^2/dt^2 L(W + t u_k v_k^T) at 0, of any sign.
        left_singular_vectors: (n_rows, K) columns u_k.
        right_singular_vectors: (n_columns, K) columns v_k.
        method: ``exact`` or ``gauss_newton``.
        rank: numerical rank of G.
        n_below_rank: how many of the ``top_k`` leading directions were cut by the rank.
        n_samples: B, samples (for language: sequences) in the batch.
        loss: mean cross-entropy of the batch.
    """

    layer: str
    kind: Kind
    weight_shape: tuple[int, ...]
    singular_values: NDArray[np.float64]
    directional_curvature: NDArray[np.float64]
    left_singular_vectors: NDArray[np.float64]
    right_singular_vectors: NDArray[np.float64]
    method: Chosen
    rank: int
    n_below_rank: int
    n_samples: int
    loss: float

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """(n_rows, n_columns) of the flattened weight."""
        return len(self.left_singular_vectors), len(self.right_singular_vectors)


def measure_directional_curvature(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    top_k: int = 20,
    chunk_size: int = 32,
    method: Method = "auto",
    layers: Sequence[str] | None = None,
    label_smoothing: float = 0.0,
    progress: bool = False,
) -> list[DirectionalSpectrum]:
    r"""Measure the loss curvature along the leading gradient directions of every layer.

    L is the mean cross-entropy on the given batch, over its samples or, for language, over all
    positions; G = dL/dW = U S V^T with convolution kernels flattened to (out, in / groups * kernel
    size), and for k = 1..K

        h_k = d^2/dt^2 L(W + t u_k v_k^T) at 0 = vec(u_k v_k^T)^T H vec(u_k v_k^T),

    K = min(top_k, numerical rank of G) (arXiv:2606.02596).

    Layers are Linear, Conv1d, Conv2d and the projections inside nn.MultiheadAttention. Embeddings
    are not measured. A weight that is used several times is measured once, with all its uses: a
    Linear that shares its weight with an Embedding (GPT-2's head) has the curvature of both.

    h_k is that of the network as it computes in eval mode. In train mode batch norm divides by
    statistics that the weight itself changes, which takes out the directions that only rescale a
    channel: another function of the weight, with curvatures many times smaller and partly negative,
    and no mean over samples. Dropout makes it random. Both are refused.

    Args:
        model: any module that maps ``inputs`` to logits (B, C), or (B, T, C) for language, without
            batch norm or dropout in train mode. Its parameters, gradients, flags and hooks are left
            as found. Attention is computed by the differentiable kernels.
        inputs: (B, ...) on the model's device; the first axis is the sample. On a CPU, images in
            ``torch.channels_last`` memory format are faster, with the same results.
        targets: (B,) or (B, T) class indices, int64, one for each row of logits.
        top_k: directions per layer.
        chunk_size: samples at a time; memory grows with it, results do not depend on it. The exact
            pass takes fewer where its tangents would be large.
        method: ``exact`` is the second derivative. ``gauss_newton`` is the Gauss-Newton form, for
            few classes many times faster. ``auto`` uses it in the layers for which the model's
            structure makes it equal to the exact one (see ``gauss_newton_obstacles``) and a check
            on the first two samples agrees, and ``exact`` in the others. The structure is that of
            these samples: a forward pass that branches on its data, or detaches values that depend
            on a weight, needs ``exact`` or another check.
        layers: names as in ``DirectionalSpectrum.layer``; by default all layers.
        label_smoothing: of the cross-entropy, in [0, 1). It moves the gradient, and adds to the
            exact curvature of curved layers; the Hessian in the logits stays the same.
        progress: print a line of progress every few seconds.

    Returns:
        One spectrum per layer, in order of registration; arrays are float64. A layer that no sample
        of the batch reaches has rank 0 and empty arrays, and a warning in the log.

    Raises:
        ValueError: if an argument is wrong, a weight is not float32 or float64 (half precision has
            too few digits for a rank), autocast is active around or inside the model, a name is no
            layer, the model couples samples, or ``gauss_newton`` is not possible.
        NumericalError: if the loss, a gradient or a curvature is NaN or infinite, or two forward
            passes over the same samples give different logits.
    """
    if method not in ("auto", "gauss_newton", "exact"):
        raise ValueError(f"method must be auto, gauss_newton or exact, found {method!r}")
    if top_k < 1:
        raise ValueError(f"top_k must be positive, found {top_k}")
    problem = check_problem(model, inputs, targets, layers, chunk_size, label_smoothing)
    batch, found, structure = problem.batch, problem.layers, problem.structure
    with differentiable_attention():
        gradients, loss = batch_gradients(batch, found, label="gradients" if progress else None)
        directions = {
            layer.name: singular_directions(
                gradient, top_k=top_k, eps=torch.finfo(layer.weight.dtype).eps
            )
            for layer, gradient in zip(found, gradients, strict=True)
        }
        methods = choose_methods(method, structure, batch, found, directions)
        curvatures: dict[str, Tensor] = {}
        for name in ("gauss_newton", "exact"):
            chosen = [
                layer
                for layer in found
                if methods[layer.name] == name and len(directions[layer.name].values)
            ]
            if not chosen:
                continue
            arguments = (batch, chosen, [directions[layer.name] for layer in chosen])
            label = f"{name} curvatures" if progress else None
            if name == "exact":
                values, _ = exact_curvatures(*arguments, label=label)
            else:
                irregular = [n for n, s in structure.layers.items() if s.unsupported]
                values, _ = gauss_newton_curvatures(*arguments, irregular=irregular, label=label)
            curvatures |= {layer.name: h for layer, h in zip(chosen, values, strict=True)}
    return [
        _spectrum(
            layer,
            directions[layer.name],
            curvatures.get(layer.name, torch.zeros(0, dtype=torch.float64)),
            kind=_kind(layer, structure.head),
            method=methods[layer.name],
            n_samples=len(targets),
            loss=loss,
        )
        for layer in found
    ]


def _kind(layer: Layer, head: str | None) -> Kind:
    if isinstance(layer.module, nn.Conv1d | nn.Conv2d):
        return "conv"
    return "head" if layer.name == head else "linear"


def _spectrum(
    layer: Layer,
    directions: SingularDirections,
    curvature: Tensor,
    *,
    kind: Kind,
    method: Chosen,
    n_samples: int,
    loss: float,
) -> DirectionalSpectrum:
    check_finite(f"directional curvature of layer {layer.name}", curvature.numpy())
    return DirectionalSpectrum(
        layer=layer.name,
        kind=kind,
        weight_shape=tuple(layer.weight.shape),
        singular_values=directions.values.numpy(),
        directional_curvature=curvature.numpy(),
        left_singular_vectors=directions.left.numpy(),
        right_singular_vectors=directions.right.numpy(),
        method=method,
        rank=directions.rank,
        n_below_rank=directions.n_below_rank,
        n_samples=n_samples,
        loss=loss,
    )
