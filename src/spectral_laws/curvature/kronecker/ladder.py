"""From exact curvature to its Kronecker approximation, one assumption at a time.

Each rung drops something: Gauss-Newton the curvature of the logits themselves, the empirical Fisher
the expectation over the model's labels, "positions" the coherence between positions of one sample,
"Kronecker" the dependence of a layer's input on its output gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.directional import DirectionalSpectrum, Kind
from spectral_laws.curvature.derivatives.gauss_newton import gauss_newton_curvatures
from spectral_laws.curvature.derivatives.gradients import SingularDirections
from spectral_laws.curvature.derivatives.problem import Batch, check_problem
from spectral_laws.curvature.introspection.layers import (
    Layer,
    differentiable_attention,
)
from spectral_laws.curvature.kronecker.factors import (
    LARGEST_FACTOR,
    FactorSpectrum,
    Vector,
    aligned_eigenvalues,
    factor_spectrum,
)
from spectral_laws.curvature.kronecker.ladder_sums import Directions, LayerSums, sum_layers
from spectral_laws.curvature.kronecker.network_factors import factors_of

RUNGS = ("gauss_newton", "fisher", "positions", "kronecker", "positions_true", "kronecker_true")
"""Names of the rungs below the exact curvature."""


@dataclass(frozen=True)
class Ladder:
    r"""Quadratic forms of one layer's curvature approximations along d_k = u_k v_k^T.

    With delta_it the gradient of sample i's loss (not divided by B) in the layer's output at
    position t of L, a_it the layer's input there (a patch, for a convolution), and N the number of
    loss terms (B samples, or B T tokens of a language model):

        gauss_newton_k = (1/N) sum_i (J_i d_k)^T H_i (J_i d_k), which for cross-entropy is the true
                         Fisher: its expectation over labels drawn from the model
        fisher_k       = (1/N) sum_i (sum_t u_k.delta_it v_k.a_it)^2, of the given labels
        positions_k    = (1/N) sum_i sum_t (u_k.delta_it)^2 (v_k.a_it)^2
        kronecker_k    = (u_k^T C_delta u_k)(v_k^T C_A v_k),
                         C_delta = (1/N) sum_it delta delta^T, C_A = (1/(B L)) sum_it a a^T

    ``positions_true`` and ``kronecker_true`` are the exact expectation of the last two over labels
    drawn from the model; they are None for language models. In a convolution with groups,
    (u.delta)(v.a) is summed over the groups of a position, and C_A is the mean over groups too:
    groups that all see the same input are then the ungrouped convolution of that input.

    rho_delta_k = u_k^T C_delta u_k / Lambda_delta_k and rho_a_k likewise, so that kronecker_k is
    the product of two ``rho`` and two ``lambda``; NaN where k exceeds a factor's rank.

    Attributes:
        layer: module name.
        kind: as in the spectrum.
        reason: why the layer has no ladder (every array is then None); empty if it has one.
        factor_reason: why a factor was not formed; its spectrum and alignments are then None.
        delta: spectrum of C_delta.
        a: spectrum of C_A.

    All arrays are (K,) float64.

    Source: curvature paper, gap and decomposition; the count of positions is that of Grosse and
    Martens 2016.
    """

    layer: str
    kind: Kind
    reason: str = ""
    factor_reason: str = ""
    gauss_newton: Vector | None = None
    fisher: Vector | None = None
    positions: Vector | None = None
    kronecker: Vector | None = None
    positions_true: Vector | None = None
    kronecker_true: Vector | None = None
    rho_delta: Vector | None = None
    rho_a: Vector | None = None
    lambda_delta: Vector | None = None
    lambda_a: Vector | None = None
    delta: FactorSpectrum | None = None
    a: FactorSpectrum | None = None

    @property
    def n_beyond_rank(self) -> int:
        """Directions without an alignment, because k exceeds the rank of a factor."""
        missing = [np.isnan(rho) for rho in (self.rho_delta, self.rho_a) if rho is not None]
        return int(np.count_nonzero(np.any(missing, axis=0))) if missing else 0


def measure_ladder(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    spectra: Sequence[DirectionalSpectrum],
    *,
    chunk_size: int = 32,
    label_smoothing: float = 0.0,
    progress: bool = False,
) -> list[Ladder]:
    """Measure every rung of :class:`Ladder` along the directions of ``spectra``.

    One forward pass and C backward passes per chunk serve all layers and rungs; a language model
    takes one backward pass, and forward tangents for the Gauss-Newton rung. ``spectra`` are those
    of ``measure_directional_curvature`` with the same arguments. ``label_smoothing`` enters the
    rungs of the given labels; the Hessian in the logits, and with it the others, does not depend on
    labels.

    Raises:
        ValueError: if ``spectra`` are of another model, batch or loss, or if a language model's
            forward pass cannot be taken apart for its tangents.
        NumericalError: if the loss, a rung or a factor is NaN or infinite.
    """
    if not spectra:
        return []
    names = [spectrum.layer for spectrum in spectra]
    problem = check_problem(model, inputs, targets, names, chunk_size, label_smoothing)
    batch, layers = problem.batch, problem.layers
    _check_shapes(layers, spectra)
    directions = [_directions(spectrum, inputs.device) for spectrum in spectra]
    sums, reasons, loss = sum_layers(
        problem, directions, label="curvature ladder" if progress else None
    )
    _check_loss(loss, spectra)
    forward = (
        _forward_gauss_newton(
            replace(batch, label_smoothing=0.0),
            [(layer, s) for layer, s in zip(layers, spectra, strict=True) if layer.name in sums],
            label="Gauss-Newton rung" if progress else None,
        )
        if targets.dim() > 1
        else {}
    )
    return [
        Ladder(layer.name, spectrum.kind, reason=reasons[layer.name])
        if layer.name in reasons
        else _ladder(
            layer,
            spectrum,
            sums[layer.name],
            n_terms=targets.numel(),
            gauss_newton=forward.get(layer.name),
        )
        for layer, spectrum in zip(layers, spectra, strict=True)
    ]


def _forward_gauss_newton(
    batch: Batch, layers: Sequence[tuple[Layer, DirectionalSpectrum]], *, label: str | None
) -> dict[str, Vector]:
    """The Gauss-Newton rung of a language model, which has too many logits for reverse passes."""
    known = {s.layer: s.directional_curvature for _, s in layers if s.method == "gauss_newton"}
    missing = [pair for pair in layers if pair[0].name not in known]
    if not missing:
        return known
    directions = [
        SingularDirections(
            values=torch.from_numpy(s.singular_values),
            left=torch.from_numpy(s.left_singular_vectors),
            right=torch.from_numpy(s.right_singular_vectors),
            rank=s.rank,
            n_below_rank=s.n_below_rank,
        )
        for _, s in missing
    ]
    with differentiable_attention():
        values, _ = gauss_newton_curvatures(
            batch, [layer for layer, _ in missing], directions, label=label
        )
    return known | {layer.name: h.numpy() for (layer, _), h in zip(missing, values, strict=True)}


def _directions(spectrum: DirectionalSpectrum, device: torch.device) -> Directions:
    left, right = spectrum.left_singular_vectors, spectrum.right_singular_vectors
    return torch.tensor(left, device=device), torch.tensor(right, device=device)


def _check_shapes(layers: Sequence[Layer], spectra: Sequence[DirectionalSpectrum]) -> None:
    for layer, spectrum in zip(layers, spectra, strict=True):
        if layer.matrix_shape != spectrum.matrix_shape:
            raise ValueError(
                f"spectra are of another model: layer {layer.name!r} has shape "
                f"{layer.matrix_shape}, its spectrum {spectrum.matrix_shape}"
            )


def _check_loss(loss: float, spectra: Sequence[DirectionalSpectrum]) -> None:
    for spectrum in spectra:
        if not np.isclose(loss, spectrum.loss, rtol=1e-4, atol=1e-12):
            raise ValueError(
                f"spectra are of another model, batch or loss: the loss is {loss:.8g} here, and "
                f"was {spectrum.loss:.8g} for layer {spectrum.layer!r}"
            )


def _ladder(
    layer: Layer,
    spectrum: DirectionalSpectrum,
    sums: LayerSums,
    *,
    n_terms: int,
    gauss_newton: Vector | None,
) -> Ladder:
    factors = factors_of(sums, n_terms)
    left, right = _directions(spectrum, layer.weight.device)
    delta = _decompose(layer, "C_delta", factors.delta, left)
    a = _decompose(layer, "C_A", factors.a, right)
    size = max(layer.matrix_shape)
    formed = factors.delta is not None and factors.a is not None
    rungs = _rungs(sums, n_terms)
    if gauss_newton is not None:
        rungs["gauss_newton"] = gauss_newton
    for name, values in rungs.items():
        check_finite(f"rung {name} of layer {layer.name}", values)
    return Ladder(
        layer=layer.name,
        kind=spectrum.kind,
        factor_reason="" if formed else f"{size} rows are more than {LARGEST_FACTOR}",
        gauss_newton=rungs["gauss_newton"],
        fisher=rungs["fisher"],
        positions=rungs["positions"],
        kronecker=rungs["kronecker"],
        positions_true=rungs.get("positions_true"),
        kronecker_true=rungs.get("kronecker_true"),
        delta=delta.spectrum,
        rho_delta=delta.rho,
        lambda_delta=delta.eigenvalues,
        a=a.spectrum,
        rho_a=a.rho,
        lambda_a=a.eigenvalues,
    )


def _rungs(sums: LayerSums, n_terms: int) -> dict[str, Vector]:
    a = sums.projected / sums.n_places
    found = {
        "fisher": sums.given.coherent / n_terms,
        "positions": sums.given.positions / n_terms,
        "kronecker": sums.given.projected / n_terms * a,
    }
    if sums.expected is not None:
        found |= {
            "gauss_newton": sums.expected.coherent / n_terms,
            "positions_true": sums.expected.positions / n_terms,
            "kronecker_true": sums.expected.projected / n_terms * a,
        }
    return {name: values.cpu().numpy() for name, values in found.items()}


@dataclass(frozen=True)
class _Decomposed:
    spectrum: FactorSpectrum | None = None
    rho: Vector | None = None
    eigenvalues: Vector | None = None


def _decompose(layer: Layer, name: str, factor: Tensor | None, vectors: Tensor) -> _Decomposed:
    """Spectrum of a factor and the alignments of ``vectors`` with it; nothing if not formed."""
    if factor is None:
        return _Decomposed()
    eps = float(torch.finfo(layer.weight.dtype).eps)
    spectrum = factor_spectrum(factor, eps=eps, name=f"factor {name} of layer {layer.name}")
    return _Decomposed(spectrum, *aligned_eigenvalues(factor, vectors, spectrum))
