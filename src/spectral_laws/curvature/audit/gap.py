"""Audit of the file on the gap between exact and Kronecker curvature."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from spectral_laws.curvature.audit.files import GAP, Gap, GapLayer
from spectral_laws.curvature.audit.rows import AuditRow, alpha_summaries, largest_difference, median
from spectral_laws.errors import DataError
from spectral_laws.fitting.loglog import fit_loglog

MINIBATCH = 128
"""Samples b of the minibatches whose mean loss was differentiated: the stored Kronecker
curvatures are 1/b^2 of those of per-sample gradients."""

_CORRECTION = f"recomputed: divided by b^2 L, b = {MINIBATCH}"
_CORRELATION = "Pearson correlation of log Kronecker curvature and log sigma^2"
_CORRELATION_TEXT = "0.974"


def gap_rows(gap: Gap) -> list[AuditRow]:
    """B1, B3, B10, B16, B21: exact over Kronecker curvature, with the factor b^2 L taken out."""
    layers = [*gap.conv_results, gap.fc_result]
    alphas = [fit_loglog(layer.array("sigma"), layer.array("h_exact")).slope for layer in layers]
    stored = [layer.alpha_exact for layer in layers]
    named = [(x.name, x.alpha_exact, alpha) for x, alpha in zip(layers, alphas, strict=True)]
    rows = alpha_summaries(named)
    slopes = [fit_loglog(*corrected_gap(layer)).slope for layer in layers]
    rows += [_slope_row(slopes[:-1]), _justification_row(layers, alphas)]
    rows += _correlation_rows(layers)
    rows.append(largest_difference("alpha", stored, alphas))
    for layer, slope in zip(layers, slopes, strict=True):
        rows += _layer_rows(layer, slope)
    return rows


def corrected_gap(
    layer: GapLayer, below: str = "h_kron"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Singular values and exact / (b^2 L approximation), L positions, where all are positive.

    The stored approximations are of gradients of the minibatch's mean loss (1/b^2) and of means
    over positions in both factors, where the sum of one of them belongs (1/L).
    """
    sigma, exact, stored = (layer.array(key) for key in ("sigma", "h_exact", below))
    used = (sigma > 0) & (exact > 0) & (stored > 0)
    if not used.any():
        raise DataError(f"{GAP}: h_exact and {below} of {layer.name} are nowhere both positive")
    return sigma[used], exact[used] / (stored[used] * MINIBATCH**2 * layer.L_spatial)


def _slope_row(slopes: list[float]) -> AuditRow:
    return AuditRow(
        "median over convolutions of the slope of log(exact / Kronecker) on log sigma",
        "B10",
        paper="about 0",
        recomputed=median(slopes),
        note=f"{len(slopes)} layers, {min(slopes):.2f} to {max(slopes):.2f}; no slope is stored, "
        "and no constant factor changes it",
        judged=True,
    )


def _justification_row(layers: list[GapLayer], alphas: list[float]) -> AuditRow:
    gaps = [abs(np.log10(np.median(corrected_gap(layer)[1]))) for layer in layers]
    return AuditRow(
        "Spearman correlation of |alpha - 2| and |log10(exact / Kronecker)|",
        "B16",
        paper="a Kronecker method is justified where |alpha - 2| is small",
        recomputed=float(spearmanr(np.abs(np.array(alphas) - 2), gaps).statistic),
        note=f"{len(layers)} layers of one network, medians after the correction",
        judged=True,
    )


def _correlation_rows(layers: list[GapLayer]) -> list[AuditRow]:
    """B21 over all directions together, as in our column, and layer by layer.

    Between layers the factor b^2 L counts, so the pooled correlation is of corrected curvatures;
    within a layer it is a constant.
    """
    logs = [_kronecker_logs(layer) for layer in layers]
    constants = [np.log(MINIBATCH**2 * layer.L_spatial) for layer in layers]
    squares = np.concatenate([square for square, _ in logs])
    stored = np.concatenate([kronecker for _, kronecker in logs])
    corrections = np.repeat(constants, [square.size for square, _ in logs])
    each = [_correlation(*pair) for pair in logs]
    return [
        AuditRow(
            f"{_CORRELATION}, all layers pooled",
            "B21",
            paper=_CORRELATION_TEXT,
            recomputed=_correlation(squares, stored + corrections),
            note=f"{squares.size} directions of {len(layers)} layers; Kronecker curvatures times "
            f"b^2 L, b = {MINIBATCH}; {_correlation(squares, stored):.3f} without that",
            judged=True,
        ),
        AuditRow(
            f"{_CORRELATION}, median of each layer's own",
            "B21",
            paper=_CORRELATION_TEXT,
            recomputed=median(each),
            note=f"{len(each)} layers, {min(each):.3f} to {max(each):.3f}; ours stands beside the "
            "claim",
        ),
    ]


def _kronecker_logs(layer: GapLayer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of sigma^2 and of the stored Kronecker curvature, where both are positive."""
    sigma, kronecker = layer.array("sigma"), layer.array("h_kron")
    used = (sigma > 0) & (kronecker > 0)
    return 2 * np.log(sigma[used]), np.log(kronecker[used])


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _layer_rows(layer: GapLayer, slope: float) -> list[AuditRow]:
    _, ratio = corrected_gap(layer)
    correction = f"{_CORRECTION}, L = {layer.L_spatial}"
    if ratio.size < len(layer.sigma):
        correction += f"; {ratio.size} of {len(layer.sigma)} directions have positive curvatures"
    return [
        AuditRow(
            "median of exact / Kronecker curvature",
            "B10",
            layer=layer.name,
            paper="1e3 to 1e7",
            stored=median(layer.cos2_theta),
            recomputed=median(ratio),
            note=correction,
        ),
        AuditRow(
            "median of exact / independent-positions curvature",
            layer=layer.name,
            recomputed=median(corrected_gap(layer, "h_sum_of_products")[1]),
            note=correction,
        ),
        AuditRow(
            "slope of log(exact / Kronecker) on log sigma",
            "B10",
            layer=layer.name,
            paper="about 0",
            recomputed=slope,
        ),
    ]
