"""Audit of the file on the intrinsic dimension, which keeps five curvatures of each layer."""

import math
from collections.abc import Sequence

import numpy as np

from spectral_laws.curvature.audit.files import Dimension, DimensionLayer
from spectral_laws.curvature.audit.rows import AuditRow, alpha_summaries, share
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound

_STORED = "the arrays behind it are not stored"
Bracket = tuple[float, float]


def dimension_rows(experiments: Sequence[Dimension]) -> list[AuditRow]:
    """B1, B2, B3, B13, B19: participation ratios, bracketed by the curvatures that are stored."""
    layers = [(e.experiment, layer) for e in experiments for layer in e.results]
    alphas = [(layer.name, layer.alpha, None) for _, layer in layers]
    rows = alpha_summaries(alphas, note=_STORED)
    rows += _bound_rows([layer for _, layer in layers])
    rows += _width_rows([layer for _, layer in layers])
    return rows + [_layer_row(experiment, layer) for experiment, layer in layers]


def participation_bracket(layer: DimensionLayer) -> Bracket | None:
    """Ends between which the participation ratio of all ``top_k`` curvatures lies.

    From the stored ones: alone, and with as many more as are not stored, all of one size. If none
    of those exceeds the second stored one, h_2, the ratio is largest where they all equal the
    smaller of h_2 and sum h^2 / sum h. None where a stored curvature is not positive.
    """
    top = layer.array("h_top")
    if (top <= 0).any() or top.size < 2:
        return None
    size = min(top[1:].max(), (top @ top) / top.sum())
    others = np.full(max(0, layer.top_k - top.size), size)
    return participation_ratio(top), participation_ratio(np.append(top, others))


def _bound_rows(layers: Sequence[DimensionLayer]) -> list[AuditRow]:
    """B13: share of layers at or below the bound, where it is finite."""
    bounded = [(x, bound) for x in layers if math.isfinite(bound := _bound(x))]
    if not bounded:
        return []
    brackets = [(b, bound) for x, bound in bounded if (b := participation_bracket(x)) is not None]
    ratios = [x.eff_rank_curvature_pr for x in layers]
    note = (
        f"{len(bounded)} layers with a finite bound, {len(layers) - len(bounded)} without; stored "
        f"ratios {min(ratios):.2f} to {max(ratios):.2f}; {_STORED}"
    )
    sure = None
    if brackets:
        sure = share(high <= bound for (_, high), bound in brackets)
        possible = share(low <= bound for (low, _), bound in brackets)
        note = (
            f"{note}. Recomputed: the share that is certain from the five curvatures stored of "
            f"{len(brackets)} layers; at most {possible:.3g} is possible"
        )
    return [
        AuditRow(
            "share of layers whose participation ratio is at most the bound",
            "B13",
            paper="at most about 2.5 at alpha gamma = 2; measured 1.0 to 1.8",
            stored=share(x.eff_rank_curvature_pr <= bound for x, bound in bounded),
            recomputed=sure,
            note=note,
            judged=True,
        )
    ]


def _width_rows(layers: Sequence[DimensionLayer]) -> list[AuditRow]:
    """B19: participation ratio of the widest network minus that of the narrowest."""
    widths = {layer.width: layer for layer in layers if layer.width is not None}
    if len(widths) < 2:
        return []
    narrow, wide = widths[min(widths)], widths[max(widths)]
    ratios = ", ".join(f"{w}: {widths[w].eff_rank_curvature_pr:.2f}" for w in sorted(widths))
    return [
        AuditRow(
            f"participation ratio at width {wide.width} minus at width {narrow.width}",
            "B19",
            paper="2.5 to 3.2 for width 64 to 512",
            stored=wide.eff_rank_curvature_pr - narrow.eff_rank_curvature_pr,
            note=f"{ratios}; {_STORED}",
            judged=True,
        )
    ]


def _layer_row(experiment: str, layer: DimensionLayer) -> AuditRow:
    bracket, bound = participation_bracket(layer), _bound(layer)
    if bracket is None:
        note = "a stored curvature is not positive: no bracket"
    else:
        ends = f"{bracket[0]:.3g} and {bracket[1]:.3g}"
        inside = bracket[0] <= layer.eff_rank_curvature_pr <= bracket[1]
        note = f"{'between' if inside else 'not between'} {ends}, the bracket of stored curvatures"
    limit = f"{bound:.3g}" if math.isfinite(bound) else "infinite"
    return AuditRow(
        "participation ratio",
        "B19" if layer.width is not None else "B13",
        layer=f"{experiment} {layer.name}",
        stored=layer.eff_rank_curvature_pr,
        note=f"{note}; bound {limit} at alpha gamma = {layer.alpha_gamma_product:.2f}",
    )


def _bound(layer: DimensionLayer) -> float:
    return participation_ratio_bound(layer.alpha_gamma_product)
