"""Recovery of single teacher directions against sample size: the paper's figure 4."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.plotting.recovery_panels import (
    DIRECTIONS,
    GUIDE,
    STEPS,
    describe,
    direction_colors,
    draw_guide,
    draw_points,
    kind_handle,
    label_logarithmic,
    of_largest_dimension,
    of_study,
    spread,
    staircases,
)
from spectral_laws.plotting.style import (
    FAINT,
    MEASURED,
    TEXT_WIDTH,
    THEORY,
    markers,
    styled,
)
from spectral_laws.plotting.tables import require, summarise_seeds

_SHOWN = 6
_RECOVERED = 0.5  # cos^2 from which a direction counts as recovered


@styled
def draw_recovery_directions(
    directions: pd.DataFrame,
    *,
    study: str = "quadratic",
    equivalent: str = "equivalent",
    confidence: float = 0.95,
) -> Figure:
    """Single directions at the largest d: true features left, Gaussian equivalent right.

    Against n / D: cos^2 of the angle between u_i and the learned subspace; 1 - cos of it, with a
    guide 1/n; the number of directions with cos^2 >= 1/2, with the paper's staircase
    m(n) = #{i : n >= D / lambda_i^2}. Points are means over seeds with Student's interval, lines
    the sharp theory. Directions are set side by side, within a third of a grid step. Of more than
    six directions, six spread evenly are drawn, and all counted.

    Args:
        directions: directions table of ``recover_features``.
        study: study of the left column.
        equivalent: study of the right column.
        confidence: level of the intervals.

    Raises:
        DataError: if a column or a study is missing.
        NumericalError: if a cos^2 is NaN or infinite.
    """
    require(directions, DIRECTIONS, name="directions")
    figure = Figure(figsize=(TEXT_WIDTH, 5.6), layout="constrained")
    axes = figure.subplots(3, 2, sharex="col", sharey="row")
    for column, name in enumerate((study, equivalent)):
        rows = of_largest_dimension(of_study(directions, name, name="directions"))
        rows = rows.assign(
            angle=1 - np.sqrt(np.clip(rows["cos2"], 0, 1)),
            predicted_angle=1 - np.sqrt(np.clip(rows["predicted_cos2"], 0, 1)),
            ratio=rows["sample_size"] / rows["feature_dimension"],
        )
        _draw_directions(axes[0, column], axes[1, column], rows, confidence)
        _draw_count(axes[2, column], rows, confidence)
        title = describe(rows, dimension=True)
        axes[0, column].set_title(f"({'ab'[column]}) {title}", loc="left")
        axes[2, column].set(xlabel=r"samples per feature, $n\,/\,D$")
    axes[0, 0].set(ylim=(-0.03, 1.03), ylabel=r"squared overlap $\cos^2\theta_i$")
    axes[1, 0].set(yscale="log", ylabel=r"$1-\cos\theta_i$")
    axes[2, 0].set(ylim=(-0.5, None), ylabel="directions recovered (count)")
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
    colors, symbols = direction_colors(shown), markers(shown)
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
            place = points["ratio"] * _dodge(points["ratio"], shown.index(direction), len(shown))
            axis.plot(place, theory["centre"], linewidth=0.9, zorder=2, **line)
            if axis is angle:  # an interval that reaches zero has no end on a logarithmic axis
                points["low"] = np.maximum(points["low"], points["centre"] / 10)
            draw_points(axis, place, points, marker=symbols[direction], **line)
    overlap.axhline(_RECOVERED, color=FAINT, linewidth=0.5, zorder=0)
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


def _dodge(ratios: pd.Series, rank: int, count: int) -> float:
    """Factor that sets one direction beside the others', within a third of a grid step."""
    if len(ratios) < 2:
        return 1.0
    step = float(np.median(np.diff(np.log(ratios.to_numpy(np.float64)))))
    return math.exp(0.3 * step * (rank - (count - 1) / 2) / count)


def _draw_count(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    counts = (
        rows.assign(found=rows["cos2"] >= _RECOVERED, expected=rows["predicted_cos2"] >= _RECOVERED)
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
    axis.set_xlim(rows["ratio"].min() / 1.15, rows["ratio"].max() * 1.15)
