"""Which method measures which layer, and a check of that choice on a small sample."""

import logging
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from spectral_laws.curvature.derivatives.exact import double_backpropagation
from spectral_laws.curvature.derivatives.gauss_newton import gauss_newton_curvatures
from spectral_laws.curvature.derivatives.gradients import SingularDirections
from spectral_laws.curvature.derivatives.tape import TapeError
from spectral_laws.curvature.introspection.layers import Layer
from spectral_laws.curvature.introspection.structure import ModelStructure

_log = logging.getLogger(__name__)

Method = Literal["auto", "gauss_newton", "exact"]
Chosen = Literal["gauss_newton", "exact"]

_SAMPLES = 2
_TOLERANCES = {torch.float32: 1e-2, torch.float64: 1e-6}
"""Largest relative difference of the two forms on the sample. Both run through the same forward
pass, so no ReLU can differ; what is left is rounding, about 1e-5 in float32 and 1e-13 in float64,
while the term that is missing where the identity fails is of the size of h itself."""


def choose_methods(
    method: Method,
    structure: ModelStructure,
    model: nn.Module,
    layers: Sequence[Layer],
    directions: Mapping[str, SingularDirections],
    inputs: Tensor,
    targets: Tensor,
    *,
    label_smoothing: float,
) -> dict[str, Chosen]:
    """The method of every layer.

    ``auto`` takes the Gauss-Newton form where the structure says that it is exact, if it also is
    for the leading direction on the first two samples.
    """
    if method != "auto":
        return dict.fromkeys(structure.layers, method)
    chosen: dict[str, Chosen] = {
        name: "exact" if found.obstacle else "gauss_newton"
        for name, found in structure.layers.items()
    }
    trusted = [
        layer
        for layer in layers
        if chosen[layer.name] == "gauss_newton" and len(directions[layer.name].values)
    ]
    if trusted:
        for name in _disagreeing(
            model,
            trusted,
            [_leading(directions[layer.name]) for layer in trusted],
            inputs[:_SAMPLES],
            targets[:_SAMPLES],
            label_smoothing=label_smoothing,
        ):
            chosen[name] = "exact"
    return chosen


def _disagreeing(
    model: nn.Module,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    inputs: Tensor,
    targets: Tensor,
    *,
    label_smoothing: float,
) -> list[str]:
    """Layers whose two forms differ on a sample, each with a warning."""
    arguments = (model, layers, directions, inputs, targets)
    try:
        fast, _ = gauss_newton_curvatures(
            *arguments, chunk_size=_SAMPLES, label_smoothing=label_smoothing
        )
    except TapeError as error:
        _log.warning("the Gauss-Newton pass is not possible, taking the exact one: %s", error)
        return [layer.name for layer in layers]
    slow, _ = double_backpropagation(
        *arguments, chunk_size=_SAMPLES, label_smoothing=label_smoothing
    )
    names = []
    for layer, gauss_newton, exact in zip(layers, fast, slow, strict=True):
        found, expected = float(gauss_newton), float(exact)
        allowed = _TOLERANCES[layer.weight.dtype] * max(abs(found), abs(expected))
        # Written so that NaN disagrees.
        if not abs(found - expected) <= allowed:
            names.append(layer.name)
            _log.warning(
                "layer %s looks piecewise linear, but its Gauss-Newton curvature %.6g is not the "
                "exact %.6g on the first %d samples; taking the exact pass",
                layer.name,
                found,
                expected,
                len(targets),
            )
    return names


def _leading(directions: SingularDirections) -> SingularDirections:
    return SingularDirections(
        values=directions.values[:1],
        left=directions.left[:, :1],
        right=directions.right[:, :1],
        rank=directions.rank,
        n_below_rank=directions.n_below_rank,
    )
