"""Tails of the weights against the decay of the curvature."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.palette import GROUP_COLORS, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    describe_layers,
    fitted,
    group_handles,
    main_rows,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import COLUMN_WIDTH, empty_panel, minus, styled, widened
from spectral_laws.plotting.tables import groups

_TITLES = {
    "decay": "(a) judged: decay in rank",
    "tail_exponent": "(b) beside it: density's exponent",
}
_PANELS = {
    "decay": r"decay of the singular values of $W$",
    "tail_exponent": r"tail exponent of the eigenvalues of $W^{\top}W$",
}


@styled
def draw(weights: pd.DataFrame, exponents: pd.DataFrame, experiments: pd.DataFrame) -> Figure:
    """Two exponents of the weights' spectrum against s of h_k ~ k^-s, one point per layer and seed.

    Top: minus the slope of the log singular values of W on log rank, leading ones. Bottom: exponent
    of a power law in the tail of the eigenvalues of W^T W (package powerlaw), with its standard
    error. The line is equality: the paper has its points below it. Horizontal hairs: bootstrap
    intervals of s.
    """
    rows = main_rows(weights, experiments, name="weights")
    slopes = fitted(exponents[exponents["final"].astype(bool)])
    keys = ["model", "seed", "layer_index"]
    both = rows.merge(slopes[[*keys, "s", "s_low", "s_high"]], on=keys, validate="one_to_one")
    both = both[both["decay"].notna() | both["tail_exponent"].notna()]
    if both.empty:
        raise DataError("weights table: no layer has both a weight spectrum and an exponent s")
    figure = Figure(figsize=(COLUMN_WIDTH, 5.8), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    axes[0].set_xlim(widened(both["s"], [both["s_low"], both["s_high"]], reach=0.15))
    for axis, column in zip(axes, _PANELS, strict=True):
        _draw(axis, both, column)
        axis.set_ylabel(_PANELS[column])
        note = describe_layers(both) if column == "decay" else _missing(both, column)
        axis.set_title(f"{_TITLES[column]}\n{note}")
    axes[1].set_xlabel(r"decay $s$ of the directional curvatures, $h_k\sim k^{-s}$")
    figure.legend(handles=group_handles(both), loc="outside upper center", ncols=5,
                  columnspacing=0.8, handlelength=1.0)  # fmt: skip
    return figure


def _missing(both: pd.DataFrame, column: str) -> str:
    missing = int(both[column].isna().sum())
    return f"{len(both) - missing} layers and seeds" + (f", no fit: {missing}" if missing else "")


def _draw(axis: Axes, both: pd.DataFrame, column: str) -> None:
    kept = both[both[column].notna()]
    if kept.empty:
        empty_panel(axis, "No layer has enough eigenvalues.")
        return
    for (group,), part in groups(kept, "group"):
        color = GROUP_COLORS[group]
        errors = part["tail_sigma"].fillna(0) if column == "tail_exponent" else None
        axis.errorbar(
            part["s"], part[column], xerr=bar_lengths(part, "s"), yerr=errors, fmt="none",
            ecolor=color, elinewidth=0.4, capsize=0, alpha=0.25,
        )  # fmt: skip
        axis.plot(part["s"], part[column], "o", color=color, markersize=2.6,
                  markeredgecolor="white", markeredgewidth=0.25, zorder=3)  # fmt: skip
    axis.set_ylim(widened([0, *kept[column]], [0, *kept[column]]))
    line = np.array([max(axis.get_xlim()[0], axis.get_ylim()[0]),
                     min(axis.get_xlim()[1], axis.get_ylim()[1])])  # fmt: skip
    axis.plot(line, line, color=THEORY, linewidth=0.8, zorder=1)
    below = int((kept[column] < kept["s"]).sum())
    difference = float((kept[column] - kept["s"]).median())
    text = f"{below} of {len(kept)} below the line\nmedian difference {difference:.2f}"
    write_corner(axis, minus(text))
