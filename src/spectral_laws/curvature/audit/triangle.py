"""Audit of the triangle file, and of the rank models that were fitted to its singular values."""

from collections.abc import Sequence

from spectral_laws.curvature.audit.files import TRIANGLE, RankModels, Triangle, TriangleLayer
from spectral_laws.curvature.audit.rows import (
    AuditRow,
    alpha_claim,
    alpha_summaries,
    largest_difference,
    median,
    share,
)
from spectral_laws.curvature.fits.independence import fit_transfer, free_error
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.fitting.rank_models import compare_rank_models

_TRANSFER = "1.6 % over 93 layers"
_STORED_KEYS = (("alpha", "alpha"), ("gamma", "gamma"), ("s", "s_hessian"))
Named = list[tuple[str, TriangleLayer]]


def triangle_rows(experiments: Sequence[Triangle]) -> list[AuditRow]:
    """B1, B2, B3, B11, B22 and the stored exponents, refitted to sigma and h."""
    layers = [(e.experiment, layer) for e in experiments for layer in e.results]
    refits = [_refit(layer) for _, layer in layers]
    alphas = [
        (layer.name, layer.alpha, refit["alpha"])
        for (_, layer), refit in zip(layers, refits, strict=True)
    ]
    rows = alpha_summaries(alphas)
    rows += _transfer_rows(layers, refits)
    rows.append(_weight_row(layers))
    for name, key in _STORED_KEYS:
        stored = [float(getattr(layer, key)) for _, layer in layers]
        again = [refit[name] for refit in refits]
        rows.append(largest_difference(name, stored, again))
        rows += [
            AuditRow(
                name,
                alpha_claim(layer.name) if name == "alpha" else "",
                layer=f"{experiment} {layer.name}",
                stored=old,
                recomputed=new,
            )
            for (experiment, layer), old, new in zip(layers, stored, again, strict=True)
        ]
    return rows


def rank_model_rows(stored: RankModels, experiments: Sequence[Triangle] | None) -> list[AuditRow]:
    """B12: share of layers that are log-normal in rank; recomputed where sigma is at hand."""
    wins = [layer.best_model_bic for layer in stored.layers]
    again, note = None, f"{len(wins)} layers; {TRIANGLE} has the singular values, and is missing"
    if experiments is not None:
        winners = {
            (e.experiment, layer.name): compare_rank_models(layer.array("sigma")).best
            for e in experiments
            for layer in e.results
        }
        again = share(winner == "lognormal" for winner in winners.values())
        changed = [
            f"{x.experiment} {x.name}"
            for x in stored.layers
            if winners.get((x.experiment, x.name)) != x.best_model_bic
        ]
        note = f"{len(wins)} layers, refitted to the singular values of {TRIANGLE}; "
        note += f"another winner than stored: {', '.join(changed) or 'none'}"
    return [
        AuditRow(
            "share of layers whose smallest BIC is log-normal",
            "B12",
            paper="21 of 24 layers (0.875)",
            stored=share(win == "lognormal" for win in wins),
            recomputed=again,
            note=note,
            judged=True,
        )
    ]


def _refit(layer: TriangleLayer) -> dict[str, float]:
    """The exponents as the author fitted them.

    alpha on positive curvatures, gamma over all singular values, s of the positive curvatures
    sorted in decreasing order, against their own rank.
    """
    sigma, h = layer.array("sigma"), layer.array("h_exact")
    ordered = sorted(h[h > 0], reverse=True)
    alpha = fit_loglog(sigma, h).slope
    gamma = -fit_loglog(range(1, sigma.size + 1), sigma).slope
    s = -fit_loglog(range(1, len(ordered) + 1), ordered).slope
    return {"alpha": alpha, "gamma": gamma, "s": s, "error": abs(s - alpha * gamma) / abs(s)}


def _transfer_rows(layers: Named, refits: Sequence[dict[str, float]]) -> list[AuditRow]:
    """B11, as the author fitted it, on equal entries, and what least squares gives for free."""
    fits = [fit_transfer(layer.array("sigma"), layer.array("h_exact")) for _, layer in layers]
    count = f"{len(layers)} layers"
    return [
        AuditRow(
            "median |s - alpha gamma| / |s|, as stored",
            "B11",
            paper=_TRANSFER,
            stored=median(layer.triangle_relative_error for _, layer in layers),
            recomputed=median(refit["error"] for refit in refits),
            note=f"{count}; gamma of all singular values, s of the positive curvatures sorted, "
            "against their own rank",
        ),
        AuditRow(
            "median |s - alpha gamma| / |s|, equal entries",
            "B11",
            paper=_TRANSFER,
            recomputed=median(abs(t.s - t.alpha * t.gamma) / abs(t.s) for t in fits),
            note=f"{count}; all three slopes on the entries with h > 0, which keep their rank",
            judged=True,
        ),
        AuditRow(
            "median error left by residuals of random direction",
            "B11",
            recomputed=median(free_error(t) for t in fits),
            note="what least squares gives for free at the observed R^2",
        ),
    ]


def _weight_row(layers: Named) -> AuditRow:
    """B22 with the decay of the weights' singular values, whose arrays are not stored.

    Stored is s of the sorted curvatures; recomputed is s by rank, as in our column.
    """
    old = [layer.s_weight - layer.s_hessian for _, layer in layers]
    again = [
        layer.s_weight - fit_transfer(layer.array("sigma"), layer.array("h_exact")).s
        for _, layer in layers
    ]
    below = [sum(gap < 0 for gap in gaps) for gaps in (old, again)]
    return AuditRow(
        "median of the weights' decay exponent minus s",
        "B22",
        paper="below s",
        stored=median(old),
        recomputed=median(again),
        note=f"stored: s of sorted curvatures, below it in {below[0]} of {len(layers)} layers; "
        f"recomputed: s by rank, as ours, below it in {below[1]}; the weights' exponents are "
        "stored without their arrays",
        judged=True,
    )
