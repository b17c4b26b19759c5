"""Which method measures which layer, and a check of that choice on a small sample."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch

from spectral_laws.curvature.derivatives.exact import double_backpropagation
from spectral_laws.curvature.derivatives.gauss_newton import gauss_newton_curvatures
from spectral_laws.curvature.derivatives.gradients import SingularDirections
from spectral_laws.curvature.derivatives.problem import Batch, NoSecondDerivativeError
from spectral_laws.curvature.derivatives.tangent import tangent_curvatures
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
    batch: Batch,
    layers: Sequence[Layer],
    directions: Mapping[str, SingularDirections],
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
        few = replace(
            batch,
            inputs=batch.inputs[:_SAMPLES],
            targets=batch.targets[:_SAMPLES],
            chunk_size=_SAMPLES,
        )
        leading = [_leading(directions[layer.name]) for layer in trusted]
        chosen |= dict.fromkeys(_disagreeing(few, trusted, leading), "exact")
    return chosen


def _disagreeing(
    batch: Batch, layers: Sequence[Layer], directions: Sequence[SingularDirections]
) -> list[str]:
    """Layers whose two forms differ on a sample, each with a warning."""
    try:
        fast, _ = gauss_newton_curvatures(batch, layers, directions)
        try:
            slow, _ = double_backpropagation(batch, layers, directions)
        except NoSecondDerivativeError:
            slow = tangent_curvatures(batch, layers, directions).exact
    except TapeError as error:
        _log.warning("the Gauss-Newton pass is not possible, taking the exact one: %s", error)
        return [layer.name for layer in layers]
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
                len(batch.targets),
            )
    return names


def _leading(directions: SingularDirections) -> SingularDirections:
    return replace(
        directions,
        values=directions.values[:1],
        left=directions.left[:, :1],
        right=directions.right[:, :1],
    )
