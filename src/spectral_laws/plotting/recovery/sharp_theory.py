"""The sharp theory against measurement: overlaps, and the constant of the threshold."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.fitting.slopes import joint_slopes
from spectral_laws.palette import FAINT, THEORY
from spectral_laws.plotting.recovery.panels import (
    GUIDE,
    STEPS,
    complete,
    draw_points,
    equivalent_identity,
    finish_logarithmic,
    kind_handle,
    of_largest_dimension,
    of_study,
    seed_range,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, markers, ordered_colors, styled
from spectral_laws.plotting.tables import groups, plural, shorten, summarise_seeds

_HOLLOW = "0.35"


@styled
def draw(
    directions: pd.DataFrame,
    thresholds: pd.DataFrame,
    *,
    study: str = "quadratic",
    confidence: float = 0.95,
) -> Figure:
    """(a) predicted against measured cos^2; (b) n*_i lambda_i^2 / D against |lambda_i|.

    (a) One point per direction and sample size of every study of equivalent features with identity
    readout, the mean over seeds, coloured by d; the diagonal is agreement; the title has the errors
    of single seeds at the largest d. (b) The sample size of
    cos^2 = 1/2 in units of D / lambda_i^2, geometric mean over seeds with Student's interval:
    filled, the same studies; hollow, ``study`` with true features; lines, the sharp theory. Only
    directions that cross 1/2 inside the grid for every seed are drawn, of many 16 spread evenly in
    log i; the others are counted. The title has the exponents of n*_i in 1/lambda_i^2 and in D.
    """
    overlaps = equivalent_identity(directions, name="directions")
    crossings = equivalent_identity(thresholds, name="thresholds")
    true = of_study(thresholds, study, name="thresholds")
    colors = ordered_colors(sorted({*overlaps["dimension"], *true["dimension"]}))
    symbols = markers(overlaps["study"])
    figure = Figure(figsize=(COLUMN_WIDTH, 6.3), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[1.15, 1])
    _draw_overlaps(upper, overlaps, colors, symbols)
    _draw_constants(lower, crossings, true, colors, symbols, confidence)
    figure.legend(handles=_handles(colors, symbols, study), loc="outside lower center", ncols=3)
    return figure


def _draw_overlaps(
    axis: Axes, rows: pd.DataFrame, colors: dict[int, str], symbols: dict[str, str]
) -> None:
    by = ["study", "dimension", "sample_size", "direction"]
    means = rows.groupby(by, as_index=False)[["cos2", "predicted_cos2"]].mean()
    axis.plot([0, 1], [0, 1], color=THEORY, linewidth=0.8, zorder=0)
    for (dimension, name), points in groups(means, "dimension", "study"):
        axis.plot(
            points["predicted_cos2"], points["cos2"], symbols[name], color=colors[dimension],
            markersize=2.4, markeredgewidth=0, alpha=0.7,
        )  # fmt: skip
    largest = of_largest_dimension(rows)
    found = largest[largest[["cos2", "predicted_cos2"]].max(axis=1) >= 0.5]
    gap = (found["cos2"] - found["predicted_cos2"]).abs()
    axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    axis.set(xlabel=r"predicted $\cos^2\theta_i$", ylabel=r"measured $\cos^2\theta_i$")
    figure_title = f"(a) Gaussian equivalent: {len(means):,} points, means of {seed_range(rows)}"
    accuracy = (
        rf"single seeds at $d$ = {largest['dimension'].iloc[0]} where either is $\geq 1/2$:"
        "\n"
        rf"$|$measured $-$ predicted$|$ at most {gap.max():.3f}, mean {gap.mean():.3f}"
    )
    # Left of the panel's own frame, which is square and so narrower than the page.
    axis.set_title(f"{figure_title}\n{accuracy}", loc="center")


def _draw_constants(
    axis: Axes,
    crossings: pd.DataFrame,
    true: pd.DataFrame,
    colors: dict[int, str],
    symbols: dict[str, str],
    confidence: float,
) -> None:
    missing = 0
    for table, hollow in ((crossings, False), (true, True)):
        for (name, dimension), rows in groups(table, "study", "dimension"):
            kept = complete(rows, "half_recovery")
            missing += rows["direction"].nunique() - kept["direction"].nunique()
            color = colors[dimension]
            if len(kept):
                kept = kept[kept["direction"].isin(thinned(kept["direction"].max()))]
                points = constants(kept, "half_recovery", confidence)
                line: dict[str, Any] = {
                    "color": color,
                    "marker": "o" if hollow else symbols[name],
                    "markersize": 2.6,
                }
                draw_points(axis, points["strength"], points, hollow=hollow, **line)
    for _, rows in groups(crossings, "study", "n_directions"):
        kept = complete(rows, "predicted_half_recovery")
        if len(kept):
            theory = constants(kept, "predicted_half_recovery", confidence)
            axis.plot(theory["strength"], theory["centre"], color=THEORY, linewidth=0.7, zorder=2)
    axis.axhline(1.0, color=FAINT, linestyle=STEPS, linewidth=0.8, zorder=0)
    axis.axhline(0.5, color=FAINT, linestyle=GUIDE, linewidth=0.9, zorder=0)
    axis.set(xscale="log", yscale="log", xlabel=r"strength $|\lambda_i|$")
    axis.set_ylabel(r"$n^*_i\,\lambda_i^2\,/\,D$")
    finish_logarithmic(axis)
    title = f"(b) half-recovery, {seed_range(pd.concat([crossings, true]))}"
    slopes = threshold_slopes(crossings)
    if slopes is not None:
        name, strength, size = slopes
        title += (
            rf"; {shorten(name)}: "
            rf"$n^*\sim(1/\lambda^2)^{{{strength:.2f}}}\,D^{{{size:.2f}}}$"
        )
    if missing:
        title += f"\n1/2 not crossed by every seed: {plural(missing, 'direction')} left out"
    axis.set_title(title)


def thinned(count: int) -> list[int]:
    """Directions 1 to ``count``: all of them, or those nearest to 16 even ratios."""
    if count <= 16:
        return list(range(1, count + 1))
    return sorted({round(k) for k in np.geomspace(1, count, 16)})


def threshold_slopes(crossings: pd.DataFrame) -> tuple[str, float, float] | None:
    """A study and its exponents of n*_i in 1/lambda_i^2 and D; None if they cannot be told apart.

    Of the study of degree 2 with the most directions of those with several d, over the directions
    that every seed recovers.
    """
    quadratic = crossings[crossings["degree"] == 2]
    several = quadratic[quadratic.groupby("study")["dimension"].transform("nunique") > 1]
    if several.empty:
        return None
    name = str(several.groupby("study")["n_directions"].mean().idxmax())
    kept = complete(several[several["study"] == name], "half_recovery")
    strength, size = joint_slopes(kept, "half_recovery")(np.arange(len(kept)))
    return None if np.isnan(strength) else (name, float(strength), float(size))


def constants(rows: pd.DataFrame, value: str, confidence: float) -> pd.DataFrame:
    """Constants n lambda^2 / D of each |lambda|: geometric mean over seeds with its interval."""
    scaled = rows.assign(
        strength=rows["weight"].abs().round(9), constant=rows[value] / rows["threshold"]
    )
    return summarise_seeds(
        scaled, ["strength"], "constant", confidence=confidence, logarithmic=True
    )


def _handles(colors: dict[int, str], symbols: dict[str, str], study: str) -> list[Line2D]:
    handles = [
        kind_handle(f"$d$ = {d}", color=color, marker=".", markersize=8, linestyle="none")
        for d, color in colors.items()
    ]
    handles += [
        kind_handle(shorten(str(name)), color=_HOLLOW, marker=symbol, linestyle="none")
        for name, symbol in symbols.items()
    ]
    return [
        *handles,
        kind_handle(f"{shorten(study)} (true)", color=_HOLLOW, marker="o",
                    markerfacecolor="white", linestyle="none"),
        kind_handle("sharp theory", color=THEORY, linewidth=0.8),
        kind_handle(r"$D/\lambda_i^2$", linestyle=STEPS, linewidth=0.8),
        kind_handle("leaves the bulk", linestyle=GUIDE),
    ]  # fmt: skip
