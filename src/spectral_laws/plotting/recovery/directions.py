"""Recovery of single teacher directions against sample size: the paper's figure 4."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spectral_laws.fitting.recovery_windows import FAR, HIDDEN, RECOVERED
from spectral_laws.palette import FAINT, MEASURED, THEORY
from spectral_laws.plotting.recovery.panels import (
    GUIDE,
    STEPS,
    describe,
    dodged,
    draw_guide,
    draw_points,
    kind_handle,
    label_logarithmic,
    of_largest_dimension,
    of_study,
    spread,
    staircases,
)
from spectral_laws.plotting.style import TEXT_WIDTH, markers, ordered_colors, styled
from spectral_laws.plotting.tables import summarise_seeds

_SHOWN = 6
_HALF = 0.5  # cos^2 from which a direction counts as recovered


@styled
def draw(
    directions: pd.DataFrame,
    thresholds: pd.DataFrame,
    *,
    study: str = "quadratic",
    equivalent: str = "equivalent",
    confidence: float = 0.95,
) -> Figure:
    """Single directions at the largest d: true features left, Gaussian equivalent right.

    Against n / D: cos^2 of the angle between u_i and the learned subspace; 1 - cos of it, with a
    guide 1/n; the number of directions with cos^2 >= 1/2, with the paper's staircase
    m(n) = #{i : n >= D / lambda_i^2}. Points are means over seeds with Student's interval, lines
    the sharp theory. Directions are set side by side, within 0.4 of a grid step. Of more than
    six directions, six spread evenly are drawn, and all counted. Bottom: cos^2 against n / n*_i,
    one point per direction, seed and sample size of all d, where n*_i lies inside the grid; frames:
    cos^2 <= 0.1 up to n*/4, and >= 0.9 from 4 n* on.
    """
    figure = Figure(figsize=(TEXT_WIDTH, 7.3), layout="constrained")
    axes = figure.subplots(4, 2, sharey="row", height_ratios=[1, 1, 1, 0.9])
    for column, name in enumerate((study, equivalent)):
        overlaps = of_study(directions, name, name="directions")
        rows = of_largest_dimension(overlaps)
        rows = rows.assign(
            angle=1 - np.sqrt(np.clip(rows["cos2"], 0, 1)),
            predicted_angle=1 - np.sqrt(np.clip(rows["predicted_cos2"], 0, 1)),
            ratio=rows["sample_size"] / rows["feature_dimension"],
        )
        _draw_directions(axes[0, column], axes[1, column], rows, confidence)
        _draw_count(axes[2, column], rows, confidence)
        title = describe(rows, dimension=True)
        axes[0, column].set_title(f"({'ab'[column]}) {title}")
        axes[2, column].set(xlabel=r"samples per feature, $n\,/\,D$")
        for axis in axes[:2, column]:
            axis.sharex(axes[2, column])
            axis.tick_params(labelbottom=False)
        _draw_collapse(axes[3, column], overlaps, of_study(thresholds, name, name="thresholds"))
    axes[0, 0].set(ylim=(-0.03, 1.03), ylabel=r"squared overlap $\cos^2\theta_i$")
    axes[1, 0].set(yscale="log", ylabel=r"$1-\cos\theta_i$")
    axes[2, 0].set(ylim=(-0.5, None), ylabel="directions recovered (count)")
    axes[2, 0].yaxis.set_major_locator(MaxNLocator(integer=True))
    axes[3, 0].set(ylim=(-0.03, 1.03), ylabel=r"squared overlap $\cos^2\theta_i$")
    for axis in axes.flat:
        axis.set_xscale("log")
        label_logarithmic(axis)
    handles = [
        kind_handle("mean over seeds", marker="o", linestyle="none"),
        kind_handle("sharp theory", linewidth=0.9),
        kind_handle(r"slope $-1$", linestyle=GUIDE),
        kind_handle(r"staircase $m(n)$ of $D/\lambda_i^2$", linestyle=STEPS, linewidth=0.8),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


def _draw_directions(overlap: Axes, angle: Axes, rows: pd.DataFrame, confidence: float) -> None:
    shown = spread(rows["direction"], shown=_SHOWN)
    colors, symbols = ordered_colors(shown, palette="plasma"), markers(shown)
    ends = rows["ratio"].min(), rows["ratio"].max()
    for direction in shown:
        mine = rows[rows["direction"] == direction]
        line: dict[str, Any] = {"color": colors[direction]}
        for axis, measured, predicted in (
            (overlap, "cos2", "predicted_cos2"),
            (angle, "angle", "predicted_angle"),
        ):
            options: dict[str, Any] = {"confidence": confidence, "bounds": (0, 1)}
            points = summarise_seeds(mine, ["ratio"], measured, **options)
            theory = summarise_seeds(mine, ["ratio"], predicted, **options)
            # Line and points are shifted together, so that they can be compared.
            order = shown.index(direction), len(shown)
            place = dodged(points["ratio"], *order, logarithmic=True)
            axis.plot(place, theory["centre"], linewidth=0.9, zorder=2, **line)
            if axis is angle:  # an interval that reaches zero has no end on a logarithmic axis
                points["low"] = np.maximum(points["low"], points["centre"] / 10)
            draw_points(axis, place, points, marker=symbols[direction], **line)
    overlap.axhline(_HALF, color=FAINT, linewidth=0.5, zorder=0)
    top = summarise_seeds(
        rows[rows["direction"] == shown[0]], ["ratio"], "predicted_angle", confidence=confidence
    ).iloc[-1]
    # The guide runs along the strongest direction, at half its height.
    reach = ends[1] / min(30.0, ends[1] / ends[0])
    draw_guide(angle, (reach, ends[1]), (ends[1], 0.5 * float(top["centre"])), -1.0)
    handles = [
        kind_handle(f"{i}", color=colors[i], marker=symbols[i], linestyle="none") for i in shown
    ]
    total = int(rows["n_directions"].iloc[0])
    angle.legend(
        handles=handles, title=rf"direction $i$ of {total}", loc="lower left", ncols=2,
        handlelength=1,
    )  # fmt: skip


def _draw_count(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    counts = (
        rows.assign(found=rows["cos2"] >= _HALF, expected=rows["predicted_cos2"] >= _HALF)
        .groupby(["ratio", "seed"], as_index=False)[["found", "expected"]]
        .sum()
    )
    total = int(rows["n_directions"].iloc[0])
    options: dict[str, Any] = {"confidence": confidence, "bounds": (0, total)}
    points = summarise_seeds(counts, ["ratio"], "found", **options)
    theory = summarise_seeds(counts, ["ratio"], "expected", **options)
    axis.plot(theory["ratio"], theory["centre"], color=THEORY, linewidth=0.9, zorder=2)
    draw_points(axis, points["ratio"], points, color=MEASURED)
    limits, count, _ = staircases(rows)
    steps = limits / float(rows["feature_dimension"].iloc[0])
    low, high = axis.get_xlim()
    low, high = min(low, rows["ratio"].min()), max(high, rows["ratio"].max())
    x = np.concatenate([[low], steps, [max(high, steps[-1])]])
    y = np.concatenate([[0.0], count, [count[-1]]])
    axis.step(x, y, where="post", color=FAINT, linestyle=STEPS, linewidth=0.8, zorder=0)
    first, last = points["ratio"].iloc[0], points["ratio"].iloc[-1]
    margin = 1.05 * (last / first) ** (0.3 / max(len(points) - 1, 1))  # of the directions beside
    axis.set_xlim(first / margin, last * margin)


def _draw_collapse(axis: Axes, overlaps: pd.DataFrame, thresholds: pd.DataFrame) -> None:
    key = ["dimension", "seed", "direction"]
    known = thresholds.loc[thresholds["half_recovery"].notna(), [*key, "half_recovery"]]
    rows = overlaps.merge(known, on=key, validate="many_to_one")
    ratio, cos2 = rows["sample_size"] / rows["half_recovery"], rows["cos2"]
    axis.plot(ratio, cos2, ".", color=MEASURED, markersize=2.4, markeredgewidth=0, alpha=0.5)
    axis.set_xscale("log")
    ends = axis.get_xlim()
    for inside, low, left, right in (
        (ratio <= 1 / FAR, 0.0, ends[0], 1 / FAR),
        (ratio >= FAR, RECOVERED, FAR, ends[1]),
    ):
        if inside.any():
            frame = [left, right, right, left, left], [low, low, low + HIDDEN, low + HIDDEN, low]
            axis.plot(*frame, color=THEORY, linewidth=0.8, zorder=4)
    axis.set(xlim=ends, xlabel=r"samples over those of half-recovery, $n\,/\,n^*_i$")
    counts = [
        f"{mask.sum()} of {mask.size}"
        for mask in (cos2[ratio <= 1 / FAR] <= HIDDEN, cos2[ratio >= FAR] >= RECOVERED)
    ]
    low, high = rows["dimension"].min(), rows["dimension"].max()
    dimensions = f"{low}" if low == high else f"{low} to {high}"
    axis.set_title(rf"$d$ = {dimensions}; hidden {counts[0]}, recovered {counts[1]}")
