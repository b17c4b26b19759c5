"""The negative control: curvatures from differences of single-precision gradients."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.directional import DirectionalSpectrum
from spectral_laws.curvature.derivatives.problem import check_problem
from spectral_laws.curvature.introspection.layers import (
    Layer,
    differentiable_attention,
    differentiable_weights,
)
from spectral_laws.progress import track


def finite_difference_curvatures(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    spectra: Sequence[DirectionalSpectrum],
    *,
    step: float,
    chunk_size: int = 32,
    label_smoothing: float = 0.0,
    progress: bool = False,
) -> list[NDArray[np.float64]]:
    """Central differences <d_k, g(W + step d_k) - g(W - step d_k)> / (2 step) of every direction.

    g is the gradient of the mean cross-entropy in the layer's weight and d_k = u_k v_k^T. Weights,
    logits, loss, gradient and difference are all in the model's own dtype, on purpose: this is the
    usual way, against which the exact curvatures are set. It fails for two reasons: the rounding of
    float32 gradients is divided by the step, and a step over the kink of a ReLU adds the jump of
    the gradient there, however many digits are carried. The second is the larger in ReLU networks,
    whose training leaves many inputs of the ReLUs close to zero. ``step`` is the Frobenius norm of
    the shift of the weight, ``spectra`` are those of this model and batch. The model's weights are
    never written to. Other arguments are those of ``measure_directional_curvature``.

    Returns:
        (K,) per spectrum, in the same order.

    Raises:
        ValueError: if ``step`` or ``chunk_size`` is not positive, or a spectrum is of no layer.
        NumericalError: if a difference is NaN or infinite.

    Source: curvature paper, measurement protocol (negative control).
    """
    if not step > 0:
        raise ValueError(f"step must be positive, found {step}")
    if not spectra:
        return []
    names = [spectrum.layer for spectrum in spectra]
    problem = check_problem(model, inputs, targets, names, chunk_size, label_smoothing)
    pairs = [*zip(problem.layers, spectra, strict=True)]
    steps = track(pairs, total=len(pairs), label="finite differences") if progress else pairs
    results = []
    for layer, spectrum in steps:

        def gradient(weight: Tensor, name: str = layer.parameter_name) -> Tensor:
            total = torch.zeros_like(weight)
            for x, y in problem.batch.chunks():
                logits = functional_call(model, {name: weight}, (x.clone(),))
                loss = cross_entropy(
                    logits.flatten(0, -2),
                    y.flatten(),
                    reduction="sum",
                    label_smoothing=label_smoothing,
                )
                total += torch.autograd.grad(loss / targets.numel(), weight)[0]
            return total

        # The model's own parameters are constants here; the shifted weight stands in for one.
        with differentiable_weights(model, []), differentiable_attention():
            values = np.array([_difference(layer, d, gradient, step) for d in _unit(spectrum)])
        check_finite(f"finite differences of layer {layer.name}", values)
        results.append(values)
    return results


def _unit(spectrum: DirectionalSpectrum) -> Iterator[Tensor]:
    """The matrices u_k v_k^T, float64, in the shape of the weight."""
    for u, v in zip(
        spectrum.left_singular_vectors.T, spectrum.right_singular_vectors.T, strict=True
    ):
        yield torch.from_numpy(np.outer(u, v)).reshape(spectrum.weight_shape)


def _difference(
    layer: Layer, direction: Tensor, gradient: Callable[[Tensor], Tensor], step: float
) -> float:
    """One central difference, in the weight's dtype throughout."""
    weight = layer.weight.detach()
    d = direction.to(weight)
    above = gradient((weight + step * d).requires_grad_())
    below = gradient((weight - step * d).requires_grad_())
    return float(((above - below) * d).sum() / (2 * step))
