"""Kronecker factors: their curvature against sigma^2, their ranks, and their law in rank."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.palette import THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    DASHED,
    check_roles,
    describe_layers,
    draw_groups,
    draw_strip,
    group_handles,
    groups_of,
    label_logarithmic,
    label_roles,
    main_rows,
    roles_of,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, empty_panel, minus, styled, view_points

PAPER_R, PAPER_SAME = 0.974, 0.87
"""The paper's correlation of the curvature with sigma^2, and share of layers with the same law."""
FACTORS = {"delta": (r"output gradients $C_\delta$", "#56b4e9"),
           "a": (r"inputs $C_A$", "#ca9161")}  # fmt: skip


@styled
def draw(
    spectra: pd.DataFrame,
    factor_models: pd.DataFrame,
    experiments: pd.DataFrame,
    *,
    top_k: int,
    confidence: float = 0.95,
) -> Figure:
    """What the two Kronecker factors of a layer say about its gradient.

    (a) Kronecker curvature along u_k v_k^T against sigma_k^2, all layers, seeds and directions,
    with Pearson's r of the logarithms; the line has slope 1 and passes through their mean.
    (b) Share of layers and seeds whose factor follows the same law in rank (smallest BIC) as the
    gradient's singular values. (c) Participation rank of the two factors by role.
    """
    rows = main_rows(spectra, experiments, name="spectra")
    rows = rows[(rows["part"] == "whole") & (rows["index"] <= top_k)]
    factors = check_roles(factor_models, name="factor_models")
    factors = main_rows(factors, experiments, name="factor_models")
    figure = Figure(figsize=(TEXT_WIDTH, 5.3), layout="constrained")
    grid = figure.add_gridspec(2, 5)
    _draw_curvature(figure.add_subplot(grid[0, :3]), rows)
    _draw_agreement(figure.add_subplot(grid[0, 3:]), factors)
    _draw_ranks(figure.add_subplot(grid[1, :]), factors, confidence)
    handles = group_handles(rows)
    handles += [
        Line2D([], [], color=color, marker="s", linestyle="none", label=name)
        for name, color in FACTORS.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


def _draw_curvature(axis: Axes, rows: pd.DataFrame) -> None:
    used = rows[(rows["kronecker"] > 0) & (rows["singular_value"] > 0)]
    title = "(a) Kronecker curvature"
    if len(used) < 3:
        empty_panel(axis, "No layer has a Kronecker curvature.", title=title)
        return
    draw_groups(axis, used, used["singular_value"] ** 2, used["kronecker"], markersize=1.5,
                markeredgewidth=0, alpha=0.4, rasterized=True)  # fmt: skip
    x = 2 * np.log(used["singular_value"].to_numpy(dtype=np.float64))
    y = np.log(used["kronecker"].to_numpy(dtype=np.float64))
    ends = np.array([x.min(), x.max()])
    axis.plot(np.exp(ends), np.exp(ends - x.mean() + y.mean()), color=THEORY, linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel=r"$\sigma_k^2$ (loss$^2$ / weight$^2$)",
             ylabel=r"$h_k$ of the Kronecker product (loss / weight$^2$)")  # fmt: skip
    label_logarithmic(axis)
    r = minus(f"{np.corrcoef(x, y)[0, 1]:.3f}")
    text = [f"$r$ = {r} (paper: {PAPER_R:g})", f"{len(used):,} directions"]
    if len(rows) > len(used):
        text.append(f"{len(rows) - len(used):,} without")
    write_corner(axis, "\n".join(text))
    axis.set_title(f"{title}: {describe_layers(used)}")


def _draw_agreement(axis: Axes, factors: pd.DataFrame) -> None:
    """Bars by family of roles; factors without a rank model are left out."""
    told = factors[factors["same"].notna()]
    if told.empty:
        empty_panel(axis, "No factor has a rank model.")
        return
    families = [*groups_of(told), "all"]
    for y, group in enumerate(families):
        for shift, (factor, (_, color)) in zip((-0.2, 0.2), FACTORS.items(), strict=True):
            mine = told[told["factor"] == factor]
            mine = mine if group == "all" else mine[mine["group"] == group]
            if mine.empty:
                continue
            share = float(mine["same"].astype(float).mean())
            axis.barh(y + shift, share, height=0.36, color=color, linewidth=0)
            axis.text(1.03, y + shift, f"{share:.2f} of {len(mine)}", va="center",
                      fontsize=SMALL)  # fmt: skip
    axis.axvline(PAPER_SAME, color=THEORY, linestyle=DASHED, linewidth=0.8, zorder=3)
    axis.set_yticks(range(len(families)), families)
    axis.tick_params(axis="y", length=0)
    axis.spines["bottom"].set_bounds(0, 1)
    axis.set(xlim=(0, 1.4), ylim=(len(families) - 0.4, -0.6), xticks=[0, 0.5, 1],
             xlabel="share with the gradient's law")  # fmt: skip
    axis.set_title(f"(b) same law in rank (dashed: paper, {PAPER_SAME:g})")


def _draw_ranks(axis: Axes, factors: pd.DataFrame, confidence: float) -> None:
    roles = roles_of(factors)
    axis.set_yscale("log")
    for place, role in enumerate(roles):
        for shift, (factor, (_, color)) in zip((-0.2, 0.2), FACTORS.items(), strict=True):
            mine = factors[(factors["role"] == role) & (factors["factor"] == factor)]
            draw_strip(axis, place + shift, mine, "participation_rank", color=color,
                       confidence=confidence, width=0.3, logarithmic=True)  # fmt: skip
    label_roles(axis, roles)
    view_points(axis)
    label_logarithmic(axis)
    axis.set_ylabel("participation rank of the factor")
    axis.set_title("(c) effective rank, median over layers with interval over seeds")
