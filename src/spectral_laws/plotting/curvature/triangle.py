"""The triangle of exponents: s against alpha * gamma."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.palette import FAINT, GROUP_COLORS, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    PAPER_ERROR,
    group_handles,
    layer_count,
    main_rows,
    some_fits,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import COLUMN_WIDTH, markers, styled, widened
from spectral_laws.plotting.tables import groups, plural, seed_count, shorten

_SLOPES = ("alpha", "gamma", "s")


@styled
def draw(exponents: pd.DataFrame, experiments: pd.DataFrame) -> Figure:
    """Fitted s against the product alpha gamma of the other two fits, one point per layer and seed.

    Where h ~ sigma^alpha and sigma ~ k^-gamma hold, h ~ k^-s with s = alpha gamma: the line.
    The vertical interval is the bootstrap interval of s; the horizontal one combines those of
    alpha and gamma in quadrature, as if they were independent.
    """
    rows = main_rows(exponents, experiments, name="exponents")
    fits = some_fits(rows, name="exponents")
    figure = Figure(figsize=(COLUMN_WIDTH, 3.75), layout="constrained")
    axis = figure.subplots()
    symbols = markers(fits["model"])
    for (model, group), part in groups(fits, "model", "group"):
        product = product_interval(part)
        x, y = product["centre"].to_numpy(np.float64), part["s"].to_numpy(np.float64)
        color = GROUP_COLORS[group]
        axis.errorbar(
            x, y,
            xerr=bar_lengths(product), yerr=bar_lengths(part, "s"),
            fmt="none", color=color, elinewidth=0.4, capsize=0, alpha=0.25,
        )  # fmt: skip
        axis.plot(
            x, y, symbols[model], color=color, markersize=3.0, markeredgecolor="white",
            markeredgewidth=0.25, zorder=3,
        )  # fmt: skip
    products = product_interval(fits)
    points = [*products["centre"], *fits["s"]]
    ends = [products["low"], products["high"], fits["s_low"], fits["s_high"]]
    limits = widened(points, ends, reach=0.15)
    axis.plot(limits, limits, color=THEORY, linewidth=0.8, zorder=0)
    axis.set(xlim=limits, ylim=limits, aspect="equal")
    axis.set(xlabel=r"product of fitted slopes $\alpha\,\gamma$", ylabel=r"fitted slope $s$")
    write_corner(axis, _summary(fits, rows))
    figure.legend(handles=_handles(fits, symbols), loc="outside upper center", ncols=3)
    return figure


def product_interval(rows: pd.DataFrame) -> pd.DataFrame:
    """Interval of alpha gamma to first order, the two intervals combined in quadrature.

    low = alpha gamma - sqrt((gamma dalpha)^2 + (alpha dgamma)^2), with dalpha and dgamma the
    distances to the end of the interval on the side that lowers the product; high likewise.

    Returns:
        Columns centre (the product), low and high.
    """
    product = rows["alpha"] * rows["gamma"]
    down, up = 0 * product, 0 * product
    for slope, factor in (("alpha", rows["gamma"]), ("gamma", rows["alpha"])):
        below, above = rows[slope] - rows[f"{slope}_low"], rows[f"{slope}_high"] - rows[slope]
        down += (factor * below.where(factor >= 0, above)) ** 2
        up += (factor * above.where(factor >= 0, below)) ** 2
    ends = {"low": product - np.sqrt(down), "high": product + np.sqrt(up)}
    return pd.DataFrame({"centre": product, **ends})


def _summary(fits: pd.DataFrame, rows: pd.DataFrame) -> str:
    error = 100 * float(np.median(fits["transfer_error"]))
    missing = len(rows) - len(fits)
    lines = [
        f"{plural(layer_count(rows), 'layer')}, {seed_count(rows)}: {plural(len(fits), 'fit')}",
        rf"median $|s-\alpha\gamma|/|s|$ = {error:.2g} % (paper: {PAPER_ERROR:g} %)",
    ]
    return "\n".join(lines + ([f"no fit: {missing}"] if missing else []))


def _handles(fits: pd.DataFrame, symbols: dict[str, str]) -> list[Line2D]:
    handles = [Line2D([], [], color=THEORY, linewidth=0.8, label=r"$s=\alpha\gamma$")]
    handles += group_handles(fits)
    handles += [
        Line2D([], [], color=FAINT, marker=symbol, linestyle="none",
               label=shorten(str(model), limit=14))
        for model, symbol in symbols.items()
    ]  # fmt: skip
    return handles
