"""The Kronecker factors of a network's curvature, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spectral_laws.curvature.derivatives.problem import check_problem
from spectral_laws.curvature.introspection.layers import Layer
from spectral_laws.curvature.kronecker.ladder_sums import Directions, LayerSums, sum_layers


@dataclass(frozen=True)
class KroneckerFactors:
    """C_delta, C_A and the expectation of C_delta over labels drawn from the model, in float64.

    A factor with more than ``factors.LARGEST_FACTOR`` rows is None, and so is ``delta_true`` for
    language models.
    """

    delta: Tensor | None
    a: Tensor | None
    delta_true: Tensor | None


def kronecker_factors(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    layers: Sequence[str] | None = None,
    chunk_size: int = 32,
    label_smoothing: float = 0.0,
) -> dict[str, KroneckerFactors]:
    """The Kronecker factors of ``Ladder`` themselves, by layer name.

    They equal the "expand" K-FAC of Eschenhagen et al. 2023 (the empirical one, and the true one by
    exact expectation over labels), with the sum over positions in C_delta and the mean in C_A; in
    convolutions with groups, C_A is here the mean of the groups' second moments. By default of all
    layers but those whose weight is used more than once, for which it is a ValueError.
    """
    problem = check_problem(model, inputs, targets, layers, chunk_size, label_smoothing)
    directions = [_no_directions(layer) for layer in problem.layers]
    sums, reasons, _ = sum_layers(problem, directions, expected_factors=True)
    for name in layers or ():
        if name in reasons:
            raise ValueError(f"layer {name!r} has no Kronecker factors: {reasons[name]}")
    return {name: factors_of(layer_sums, targets.numel()) for name, layer_sums in sums.items()}


def factors_of(sums: LayerSums, n_terms: int) -> KroneckerFactors:
    """Second moments from the sums of a batch with ``n_terms`` loss terms."""
    return KroneckerFactors(
        delta=None if sums.given.factor is None else sums.given.factor / n_terms,
        a=None if sums.factor is None else sums.factor / sums.n_places,
        delta_true=(
            None
            if sums.expected is None or sums.expected.factor is None
            else sums.expected.factor / n_terms
        ),
    )


def _no_directions(layer: Layer) -> Directions:
    empty = [layer.weight.new_zeros(size, 0, dtype=torch.float64) for size in layer.matrix_shape]
    return empty[0], empty[1]
