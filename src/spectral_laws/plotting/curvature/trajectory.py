"""Curvature during training: alpha by kind of layer, and the law of the singular values."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from spectral_laws.palette import KIND_COLORS, LAWS
from spectral_laws.plotting.curvature.panels import (
    check_roles,
    fitted,
    layer_count,
    reference,
    seed_medians,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import COLUMN_WIDTH, TEXT_WIDTH, empty_panel, styled, view_points
from spectral_laws.plotting.tables import groups, plural, seed_count, shorten, summarise_seeds

_KINDS = {"conv": ("convolutions", "D"), "linear": ("other layers", "v"), "head": ("head", "P")}
"""Name and marker; the markers are no law's."""
_SIDE = {"conv": -1, "linear": 0, "head": 1, "lognormal": -1, "power_law": 0, "exponential": 1}
"""Bars of one epoch stand side by side."""
_LONG = 30  # epochs from which the axis is logarithmic beyond 1


@styled
def draw(exponents: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """Exponents alpha by kind of layer and the shares of the rank models against the epoch.

    One column per model that was measured before its last epoch too. Top: median over layers of
    alpha, mean over seeds with Student's interval. Bottom: share of layers whose singular values
    each rank model describes best by BIC, likewise.
    """
    rows = check_roles(exponents, name="exponents")
    # Trainings stop at epochs of their own: their last ones stand together, at the mean.
    final = rows["final"].astype(bool)
    last = rows["epoch"].where(final).groupby(rows["model"]).transform("mean")
    rows = rows.assign(epoch=rows["epoch"].where(~final, last))
    models = [str(model) for model in rows.loc[~final, "model"].unique()]
    if not models:
        figure = Figure(figsize=(COLUMN_WIDTH, 1.6), layout="constrained")
        empty_panel(
            figure.subplots(),
            "No network of this preset was measured at more than one epoch "
            "(checkpoints under curvature.models).",
        )
        return figure
    width = COLUMN_WIDTH if len(models) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    halves = figure.subfigures(2, 1, squeeze=False)[:, 0]
    axes = np.stack([half.subplots(1, len(models), squeeze=False, sharey=True)[0]
                     for half in halves])  # fmt: skip
    for i, model in enumerate(models):
        mine = rows[rows["model"] == model]
        letters = "abcdefghijklmnop"
        _draw_alpha(axes[0, i], mine, confidence, letters[i])
        _draw_winners(axes[1, i], mine, confidence)
        axes[1, i].sharex(axes[0, i])
        axes[1, i].set_title(f"({letters[len(models) + i]})")
        axes[1, i].set_xlabel("epoch (0: initial network)")
        longest = max(float(mine["epoch"].max()), 1.0)
        axes[1, i].set_xlim(-0.07 * longest, 1.07 * longest)
        if longest > _LONG:
            axes[1, i].set_xscale("symlog", linthresh=1)
            axes[1, i].set_xlim(-0.5, 1.5 * longest)
    axes[0, 0].set_ylabel(r"$\alpha$, median over layers")
    axes[1, 0].set_ylabel("share of layers, by BIC")
    drawn = rows[rows["model"].isin(models)]
    for half, handles in zip(halves, (_kind_handles(drawn), _law_handles()), strict=True):
        half.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _draw_alpha(axis: Axes, rows: pd.DataFrame, confidence: float, letter: str) -> None:
    reference(axis, 1, 2)
    fits = fitted(rows)
    if not fits.empty:
        summary = seed_medians(fits, ["kind", "epoch"], "alpha", confidence=confidence)
        for (kind,), part in groups(summary, "kind"):
            _draw_line(
                axis, part, color=KIND_COLORS[kind], marker=_KINDS[kind][1], side=_SIDE[kind]
            )
        view_points(axis, 1, 2)
    title = f"{shorten(str(rows['model'].iloc[0]))}: {plural(layer_count(rows), 'layer')}"
    missing = len(rows) - len(fits)
    note = f"\nno fit: {missing} of {len(rows)}" if missing else ""
    axis.set_title(f"({letter}) {title}, {seed_count(rows)}{note}")


def _draw_winners(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    fits = rows[rows["rank_model"].notna()]
    for law, (_, color, marker) in LAWS.items():
        if fits.empty:
            continue
        won = fits.assign(share=(fits["rank_model"] == law).astype(float))
        shares = won.groupby(["epoch", "seed"])["share"].mean().reset_index()
        summary = summarise_seeds(
            shares, ["epoch"], "share", confidence=confidence, bounds=(0.0, 1.0)
        )
        _draw_line(axis, summary, color=color, marker=marker, side=_SIDE[law])
    axis.set_ylim(-0.03, 1.03)


def _draw_line(axis: Axes, summary: pd.DataFrame, *, color: str, marker: str, side: int) -> None:
    shift = 1.5 * side / 72  # inches
    beside = axis.transData + ScaledTranslation(shift, 0, axis.figure.dpi_scale_trans)
    axis.errorbar(
        summary["epoch"], summary["centre"], yerr=bar_lengths(summary), color=color, marker=marker,
        linewidth=0.7, elinewidth=0.6, capsize=0, transform=beside,
    )  # fmt: skip


def _kind_handles(rows: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D([], [], color=color, marker=_KINDS[kind][1], linewidth=0.7, label=_KINDS[kind][0])
        for kind, color in KIND_COLORS.items()
        if (rows["kind"] == kind).any()
    ]


def _law_handles() -> list[Line2D]:
    return [
        Line2D([], [], color=color, marker=marker, linewidth=0.7, label=name)
        for name, color, marker in LAWS.values()
    ]
