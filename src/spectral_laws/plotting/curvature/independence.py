"""How much of s = alpha gamma is evidence, and how much least squares gives for nothing."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.palette import FAINT, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    DASHED,
    PAPER_ERROR,
    describe_layers,
    draw_groups,
    draw_strip,
    group_handles,
    label_logarithmic,
    label_strips,
    main_rows,
    median_handle,
    some_fits,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, SMALL, styled, view_points

ERRORS = {
    "error_same": "whole\nbatch",
    "error_halves": "disjoint\nhalves",
    "error_repeat": "$s$\nrepeated",
    "error_permuted": "permuted\n$h$",
    "error_free": "from least\nsquares\nalone",
}


@styled
def draw(
    independence: pd.DataFrame, experiments: pd.DataFrame, *, confidence: float = 0.95
) -> Figure:
    """Relative errors of s = alpha gamma, each with what it takes away from the agreement.

    (a) |s - alpha gamma| / |s| with all three slopes from the whole batch; with alpha from one half
    of the batch, gamma and s from the other; beside it s of one half against s of the other; with
    the curvatures permuted among the directions;
    and the error that least squares leaves for residuals of random direction at the observed R^2.
    Faint points: one layer of one seed; large ones: median over layers, mean over seeds with
    Student's interval. (b) The first against the last, layer by layer: residuals of random
    direction put about 57 % of the points below the line; only more would be evidence.
    """
    rows = main_rows(independence, experiments, name="independence")
    fits = some_fits(rows, name="independence")
    figure = Figure(figsize=(COLUMN_WIDTH, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[0.85, 1])
    missing = len(rows) - len(fits)
    upper.set_title(f"(a) {describe_layers(rows)}" + (f", no fit: {missing}" if missing else ""))
    _draw_errors(upper, fits, confidence)
    _draw_pairs(lower, fits)
    figure.legend(
        handles=[*group_handles(fits), median_handle("median, interval")],
        loc="outside upper center",
        ncols=3,
    )
    return figure


def _draw_errors(axis: Axes, fits: pd.DataFrame, confidence: float) -> None:
    axis.set_yscale("log")
    percent = fits.assign(**{name: 100 * fits[name] for name in ERRORS})
    for i, name in enumerate(ERRORS):
        median = draw_strip(
            axis, i, percent, name, color=FAINT, confidence=confidence, logarithmic=True
        )
        text = "none" if median is None else f"{median[0]:.2g} %"
        axis.text(i, 1.0, text, transform=axis.get_xaxis_transform(), ha="center", va="top",
                  fontsize=SMALL + 0.5)  # fmt: skip
    label_strips(axis, [*ERRORS.values()])
    axis.set_ylabel(r"$|s-\alpha\gamma|\,/\,|s|$ (%)")
    view_points(axis)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * (high / low) ** 0.1)  # room for the medians
    axis.plot([-0.45, 0.45], [PAPER_ERROR] * 2, color=THEORY, linestyle=DASHED, linewidth=0.9,
              zorder=3)  # fmt: skip
    axis.text(0.48, PAPER_ERROR, f"paper {PAPER_ERROR:g} %", va="center", fontsize=SMALL,
              rotation=90, ha="left")  # fmt: skip
    label_logarithmic(axis)


def _draw_pairs(axis: Axes, fits: pd.DataFrame) -> None:
    both = fits[(fits["error_same"] > 0) & (fits["error_free"] > 0)]
    draw_groups(axis, both, 100 * both["error_free"], 100 * both["error_same"], markersize=2.6,
                markeredgecolor="white", markeredgewidth=0.2)  # fmt: skip
    axis.set(xscale="log", yscale="log")
    values = 100 * both[["error_free", "error_same"]].to_numpy(dtype=np.float64)
    if values.size:
        ends = np.array([values.min() / 1.3, values.max() * 1.3])
        axis.plot(ends, ends, color=THEORY, linewidth=0.8, zorder=0)
        axis.set(xlim=(values[:, 0].min() / 1.3, ends[1]), ylim=ends)
        below = int((values[:, 1] < values[:, 0]).sum())
        write_corner(axis, f"{below} of {len(values)} below the line")
    axis.set(xlabel="least squares alone (%)", ylabel="whole batch (%)")
    axis.set_title("(b) one point per layer and seed")
    label_logarithmic(axis)
