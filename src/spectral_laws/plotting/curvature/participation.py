"""How many directions carry the curvature: participation ratios, their bound, width and depth."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from spectral_laws.palette import FAINT, GROUP_COLORS, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    check_roles,
    describe_layers,
    draw_groups,
    draw_medians,
    draw_strip,
    fitted,
    group_handles,
    groups_of,
    main_rows,
    median_handle,
    reference,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, empty_panel, styled, view_points
from spectral_laws.plotting.tables import seed_count, summarise_seeds

_REACH = 3.0  # times the largest participation ratio: larger bounds are not drawn


@styled
def draw(exponents: pd.DataFrame, experiments: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """Participation ratios of directional curvatures, and what width and depth do.

    (a) PR = (sum h)^2 / sum h^2 of the positive curvatures against the paper's bound
    zeta(a g)^2 / zeta(2 a g); the line is equality. Where alpha gamma <= 1 the bound is infinite
    and the layer is counted, not drawn, as are bounds above three times the largest PR. (b)
    Histogram of PR. (c) PR of the first layer against width, mean over seeds with Student's
    interval. (d) Alpha against depth: layers as faint points, median over layers with its interval
    over seeds.
    """
    rows = main_rows(exponents, experiments, name="exponents")
    others = check_roles(experiments, name="experiments")
    others = fitted(others[others["final"].astype(bool)])
    fits = fitted(rows)
    figure = Figure(figsize=(TEXT_WIDTH, 5.2), layout="constrained")
    axes = figure.subplots(2, 2)
    if fits.empty:
        for axis in axes[0]:
            empty_panel(axis, "No layer has a fit.")
    else:
        _draw_bound(axes[0, 0], fits)
        _draw_histogram(axes[0, 1], fits)
    _draw_width(axes[1, 0], others[others["experiment"] == "width"], confidence)
    _draw_depth(axes[1, 1], others[others["experiment"] == "depth"], confidence)
    figure.legend(
        handles=[*group_handles(fits), median_handle("mean (c), median (d), interval over seeds")],
        loc="outside upper center", ncols=6,
    )  # fmt: skip
    return figure


def _draw_bound(axis: Axes, fits: pd.DataFrame) -> None:
    finite = fits[fits["participation_bound"].notna()]
    edge = _REACH * float(fits["participation_ratio"].max())
    far = finite["participation_bound"] > edge
    near = finite[~far]
    draw_groups(axis, near, near["participation_bound"], near["participation_ratio"],
                markersize=2.6, markeredgecolor="white", markeredgewidth=0.2)  # fmt: skip
    infinite = len(fits) - len(finite)
    text = [f"bound above {edge:.0f} (not drawn): {far.sum()}"] if far.any() else []
    text += [f"bound infinite: {infinite}"] if infinite else []
    axis.set(xscale="log", yscale="log")
    if len(finite):
        below = finite["participation_ratio"] <= finite["participation_bound"]
        text.insert(0, f"{below.sum()} of {below.size} at or below the bound")
        line = np.array([1.0, float(finite["participation_ratio"].max())])
        axis.plot(line, line, color=THEORY, linewidth=0.8, zorder=0)
        for one in (axis.xaxis, axis.yaxis):  # few decades: 1, 2, 5, 10, ...
            one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            one.set_minor_locator(NullLocator())
    axis.margins(y=0.12)
    write_corner(axis, "\n".join(text))
    axis.set(xlabel=r"bound $\zeta(\alpha\gamma)^2/\zeta(2\alpha\gamma)$ (directions)",
             ylabel="participation ratio (directions)")  # fmt: skip
    axis.set_title(f"(a) {describe_layers(fits)}")


def _draw_histogram(axis: Axes, fits: pd.DataFrame) -> None:
    ratio = fits["participation_ratio"].to_numpy(dtype=np.float64)
    edges = np.linspace(1.0, max(float(ratio.max()), 2.0), 25).tolist()
    names = groups_of(fits)
    sns.histplot(
        fits, x="participation_ratio", hue="group", hue_order=names, palette=GROUP_COLORS,
        bins=edges, multiple="stack", alpha=1, linewidth=0, legend=False, ax=axis,
    )  # fmt: skip
    median = float(np.median(ratio))
    axis.axvline(median, color=THEORY, linewidth=0.8)
    axis.text(0.97, 0.97, f"median {median:.2g}", transform=axis.transAxes, ha="right", va="top",
              fontsize=SMALL)  # fmt: skip
    axis.set(xlabel="participation ratio (directions)", ylabel="layers and seeds (count)")
    axis.set_title(f"(b) {len(fits)} fits")


def _draw_width(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    title = "(c) first layer against width"
    rows = rows[rows["value"].notna()]
    if rows.empty:
        text = "The experiment 'width' is not in this preset, or has no fit."
        empty_panel(axis, text, title=title)
        return
    first = rows[rows["layer_index"] == rows.groupby("model")["layer_index"].transform("min")]
    summary = summarise_seeds(first, ["value"], "participation_ratio", confidence=confidence)
    axis.plot(first["value"] / 1.08, first["participation_ratio"], "o", color=FAINT,
              markersize=1.8, alpha=0.6, markeredgewidth=0)  # fmt: skip
    draw_medians(axis, summary["value"], summary, color=FAINT)
    axis.set_xscale("log", base=2)
    widths = sorted(first["value"].unique())
    axis.set_xticks(widths, [f"{width:g}" for width in widths])
    axis.set_xticks([], minor=True)
    axis.set_xlim(widths[0] / 1.4, widths[-1] * 1.4)
    view_points(axis)
    axis.set(xlabel="width (units or channels)", ylabel="participation ratio (directions)")
    axis.set_title(f"{title}, {seed_count(first)}")


def _draw_depth(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    title = r"(d) $\alpha$ against depth"
    rows = rows[rows["value"].notna() & (rows["kind"] != "head")]
    if rows.empty:
        text = "The experiment 'depth' is not in this preset, or has no fit."
        empty_panel(axis, text, title=title)
        return
    depths = sorted(rows["value"].unique())
    reference(axis, 1, 2)
    for place, depth in enumerate(depths):
        mine = rows[rows["value"] == depth]
        draw_strip(axis, place, mine, "alpha", color=FAINT, confidence=confidence)
    axis.set_xticks(range(len(depths)), [f"{depth:g}" for depth in depths])
    axis.set_xlim(-0.6, len(depths) - 0.4)
    view_points(axis, 1, 2)
    axis.set(xlabel="depth (hidden layers or blocks)", ylabel=r"$\alpha$ of hidden layers")
    axis.set_title(f"{title}: {describe_layers(rows)}")
