"""Controls of the measurement: finite differences, and true eigenvalues of the Hessian block."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.fitting.loglog import MINIMUM_POINTS, fit_loglog
from spectral_laws.palette import FAINT, GROUP_COLORS, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    DASHED,
    check_roles,
    describe_layers,
    draw_groups,
    draw_strip,
    group_handles,
    label_logarithmic,
    label_roles,
    label_strips,
    median_handle,
    reference,
    roles_of,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, empty_panel, styled
from spectral_laws.plotting.tables import groups

PAPER_R2 = 0.17
"""R^2 of the paper's finite differences."""


@styled
def draw(
    finite_differences: pd.DataFrame, eigenvalues: pd.DataFrame, *, confidence: float = 0.95
) -> Figure:
    """Finite differences against exact curvatures, and h_1 against the largest eigenvalue.

    (a) Central differences of float32 gradients along u_k v_k^T against the exact h_k; a negative
    one is drawn at its absolute value, hollow. The line is equality. (b) R^2 of log h on log sigma
    per layer, with either h (positive ones; layers with five or more). (c) h_1 against the largest
    eigenvalue of the layer's Hessian block, which it cannot exceed. (d) Their ratio by role.
    """
    differences = check_roles(finite_differences, name="finite_differences")
    leading = check_roles(eigenvalues, name="eigenvalues")
    leading = leading[leading["index"] == 1]
    leading = leading.assign(share=leading["directional_curvature"] / leading["eigenvalue"])
    figure = Figure(figsize=(TEXT_WIDTH, 5.4), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_differences(axes[0, 0], differences)
    _draw_fits(axes[0, 1], differences, confidence)
    _draw_eigenvalues(axes[1, 0], leading)
    _draw_shares(axes[1, 1], leading, confidence)
    both = pd.concat([differences, leading], ignore_index=True)
    figure.legend(handles=[*group_handles(both), median_handle()], loc="outside upper center",
                  ncols=6)  # fmt: skip
    return figure


def _equality(axis: Axes, low: float, high: float) -> None:
    axis.plot([low, high], [low, high], color=THEORY, linewidth=0.8, zorder=0)
    axis.set(xscale="log", yscale="log")
    label_logarithmic(axis)


def _draw_differences(axis: Axes, rows: pd.DataFrame) -> None:
    kept = rows[(rows["directional_curvature"] > 0) & (rows["finite_difference"] != 0)]
    negative = kept["finite_difference"] < 0
    for (group,), part in groups(kept, "group"):
        color = GROUP_COLORS[group]
        for below, face in ((False, color), (True, "none")):
            mine = part[negative.loc[part.index] == below]
            axis.plot(
                mine["directional_curvature"], mine["finite_difference"].abs(), "o", color=color,
                markerfacecolor=face, markersize=2.2, markeredgewidth=0.4, alpha=0.7,
                rasterized=True,
            )  # fmt: skip
    exact = kept["directional_curvature"]
    if len(kept):
        _equality(axis, float(exact.min()), float(exact.max()))
    share = (rows["finite_difference"] < 0).mean()
    text = f"negative (hollow): {100 * share:.2g} % of {len(rows):,}\n(paper: about half)"
    if len(rows) > len(kept):
        text += f"\nnot drawn: {len(rows) - len(kept):,}"
    axis.margins(y=0.12)
    write_corner(axis, text)
    steps = ", ".join(f"{step:g}" for step in sorted(rows["step"].unique()))
    axis.set(xlabel=r"exact $h_k$ (loss / weight$^2$)", ylabel=r"|finite difference|")
    axis.set_title(f"(a) step {steps}: {describe_layers(rows)}")


def _r2(rows: pd.DataFrame, column: str) -> float:
    good = (rows[column] > 0) & (rows["singular_value"] > 0)
    if good.sum() < MINIMUM_POINTS:
        return np.nan
    return fit_loglog(rows.loc[good, "singular_value"], rows.loc[good, column]).r2


def _draw_fits(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    columns = {"directional_curvature": "exact", "finite_difference": "finite differences"}
    layers = pd.DataFrame(
        {"seed": key[1], **{column: _r2(part, column) for column in columns}}
        for key, part in groups(rows, "model", "seed", "layer_index")
    )
    axis.set_ylim(-0.02, 1.12)
    labels = []
    for place, (column, name) in enumerate(columns.items()):
        median = draw_strip(
            axis, place, layers, column, color=FAINT, confidence=confidence, bounds=(0.0, 1.0)
        )
        count = int(layers[column].notna().sum())
        text = f"{count} of {len(layers)} layers"
        labels.append(f"{name}\n{text}" + ("" if median is None else f"\nmedian {median[0]:.2f}"))
    axis.plot([0.6, 1.4], [PAPER_R2] * 2, color=THEORY, linestyle=DASHED, linewidth=0.9, zorder=3)
    axis.text(1.43, PAPER_R2, f"paper\n{PAPER_R2:g}", va="center", fontsize=SMALL)
    label_strips(axis, labels)
    axis.set(xlim=(-0.6, 1.6), ylabel=r"$R^2$ of log $h$ on log $\sigma$")
    axis.set_title("(b) one point per layer and seed")


def _draw_eigenvalues(axis: Axes, leading: pd.DataFrame) -> None:
    kept = leading[(leading["eigenvalue"] > 0) & (leading["directional_curvature"] > 0)]
    draw_groups(axis, kept, kept["eigenvalue"], kept["directional_curvature"],
                markeredgecolor="white", markeredgewidth=0.3)  # fmt: skip
    if len(kept):
        values = kept[["eigenvalue", "directional_curvature"]].to_numpy(dtype=np.float64)
        _equality(axis, float(values.min()), float(values.max()))
    if len(leading) > len(kept):
        write_corner(axis, f"not drawn (not positive): {len(leading) - len(kept)}")
    axis.set(xlabel=r"largest eigenvalue $\lambda_1$ of the block (loss / weight$^2$)",
             ylabel=r"directional curvature $h_1$")  # fmt: skip
    axis.set_title(f"(c) {describe_layers(leading)}")


def _draw_shares(axis: Axes, leading: pd.DataFrame, confidence: float) -> None:
    positive = leading[leading["eigenvalue"] > 0]
    if positive.empty:
        empty_panel(axis, "No block has a positive eigenvalue.")
        return
    roles = roles_of(positive)
    for place, role in enumerate(roles):
        mine = positive[positive["role"] == role]
        draw_strip(axis, place, mine, "share", color=GROUP_COLORS[mine["group"].iloc[0]],
                   confidence=confidence, bounds=(-np.inf, 1.0))  # fmt: skip
    reference(axis, 1.0)
    label_roles(axis, roles)
    axis.set_ylim(min(0.0, float(positive["share"].min())), 1.12)
    axis.set_ylabel(r"$h_1/\lambda_1$")
    median = float(positive["share"].median())
    axis.set_title(f"(d) median {median:.2g}: not an eigenvalue")
