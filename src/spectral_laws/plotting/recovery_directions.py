"""Recovery of single teacher directions against sample size."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.errors import DataError
from spectral_laws.plotting.style import FAINT, column_panels, markers, ordered_colors, styled
from spectral_laws.plotting.tables import plural, require, seed_count, study_name, summarise_seeds

_STUDY = ("study", "degree", "dimension", "feature_dimension", "n_directions", "gamma", "seed")
_DIRECTIONS = (*_STUDY, "sample_size", "direction", "cos2")
_THRESHOLDS = ("study", "dimension", "seed", "direction", "threshold", "half_recovery", "censored")
_SHOWN = 8


@styled
def draw_recovery_directions(
    directions: pd.DataFrame,
    thresholds: pd.DataFrame,
    *,
    study: str | None = None,
    confidence: float = 0.95,
) -> Figure:
    """cos^2 of the angle between u_i and the learned subspace, against n, largest dimension.

    Points are means over seeds with Student's interval; dashed verticals the thresholds
    D / lambda_i^2 (an order of magnitude, not a fit); a diamond on cos^2 = 1/2 the median over
    seeds of the half-recovery sample size n*_i, where a seed that never crosses 1/2 counts as
    beyond the grid. Of more than eight directions, eight spread evenly are drawn.

    Args:
        directions: directions table of ``recover_features``.
        thresholds: thresholds table of ``recover_features``.
        study: name of the study; None draws a panel for every study of the highest degree.
        confidence: level of the intervals.

    Raises:
        DataError: if a column is missing, the study is unknown, or there is nothing to draw.
        NumericalError: if a cos^2 is NaN or infinite.
    """
    require(directions, _DIRECTIONS, name="directions")
    require(thresholds, _THRESHOLDS, name="thresholds")
    known = list(dict.fromkeys(directions["study"]))
    if study is not None and study not in known:
        raise DataError(f"directions table: no study {study!r}, there are {', '.join(known)}")
    highest = directions["degree"] == directions["degree"].max()
    studies = [study] if study else list(dict.fromkeys(directions.loc[highest, "study"]))
    figure, axes = column_panels(len(studies), height=2.3, header=0.3)
    for axis, name in zip(axes, studies, strict=True):
        rows = directions[directions["study"] == name]
        rows = rows[rows["dimension"] == rows["dimension"].max()]
        of_study = thresholds["study"] == name
        of_dimension = thresholds["dimension"] == rows["dimension"].iloc[0]
        _draw_study(axis, rows, thresholds[of_study & of_dimension], confidence)
    figure.legend(handles=_kinds(), loc="outside upper center", ncols=3, handletextpad=0.4)
    return figure


def _draw_study(
    axis: Axes, rows: pd.DataFrame, thresholds: pd.DataFrame, confidence: float
) -> None:
    shown = _spread(sorted(rows["direction"].unique()))
    colors, symbols = ordered_colors(shown, palette="plasma"), markers(shown)
    by = ["direction", "sample_size"]
    means = summarise_seeds(rows, by, "cos2", confidence=confidence, bounds=(0, 1))
    axis.axhline(0.5, color=FAINT, linewidth=0.5, zorder=0)
    censored = 0
    for direction in shown:
        color = colors[direction]
        points = means[means["direction"] == direction]
        centre = points["centre"].to_numpy()
        spread = np.stack([centre - points["low"], points["high"] - centre])
        place = points["sample_size"] * _dodge(points["sample_size"], direction, shown)
        axis.errorbar(place, centre, yerr=spread, color=color, marker=symbols[direction])
        of_direction = thresholds[thresholds["direction"] == direction]
        for threshold in of_direction["threshold"].unique():
            axis.axvline(threshold, color=color, linestyle=(0, (4, 2)), linewidth=0.7, zorder=1)
        crossings = half_recovery(of_direction)
        censored += int(np.isinf(crossings).sum() + (crossings == 0).sum())
        if crossings.size and 0 < np.median(crossings) < np.inf:
            axis.plot(
                np.median(crossings), 0.5, "D", color=color, markeredgecolor="black",
                markersize=4.5, zorder=4,
            )  # fmt: skip
    axis.set(xscale="log", ylim=(-0.03, 1.03), xlabel=r"sample size $n$")
    axis.set_ylabel(r"squared overlap $\cos^2\theta_i$")
    handles = [Line2D([], [], color=colors[i], marker=symbols[i], label=f"{i}") for i in shown]
    axis.legend(
        handles=handles,
        title=r"direction $i$",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0,
    )
    axis.set_title(
        _title(rows, censored, len(shown), len(shown) * rows["seed"].nunique()), loc="left"
    )


def half_recovery(thresholds: pd.DataFrame) -> NDArray[np.float64]:
    """n*_i of each row; 0 where it lies below the grid, infinity where above."""
    values = pd.to_numeric(thresholds["half_recovery"]).to_numpy(dtype=np.float64)
    values = np.where(thresholds["censored"] == "below", 0.0, values)
    return np.where(thresholds["censored"] == "above", np.inf, values)


def _dodge(sample_sizes: pd.Series, direction: int, shown: list[int]) -> float:
    """Factor that sets one direction's points beside the others', within a third of a grid step."""
    if len(sample_sizes) < 2:
        return 1.0
    step = float(np.median(np.diff(np.log(np.sort(sample_sizes.to_numpy(np.float64))))))
    place = shown.index(direction) - (len(shown) - 1) / 2
    return math.exp(0.3 * step * place / len(shown))


def _spread(directions: list[int]) -> list[int]:
    if len(directions) <= _SHOWN:
        return directions
    picks = np.linspace(0, len(directions) - 1, _SHOWN).round().astype(int)
    return [directions[i] for i in picks]


def _title(rows: pd.DataFrame, censored: int, shown: int, curves: int) -> str:
    first = rows.iloc[0]
    lines = [
        rf"{study_name(first['study'])}$q$ = {first['degree']}, $d$ = {first['dimension']}, "
        rf"$D$ = {first['feature_dimension']}, $\gamma$ = {first['gamma']:g}, {seed_count(rows)}"
    ]
    if shown < first["n_directions"]:
        lines.append(f"{shown} of {first['n_directions']} directions shown")
    if censored:
        lines.append(f"1/2 not crossed inside the grid: {plural(censored, 'curve')} of {curves}")
    return "\n".join(lines)


def _kinds() -> list[Line2D]:
    return [
        Line2D([], [], color=FAINT, marker="o", label="mean over seeds"),
        Line2D([], [], color=FAINT, linestyle=(0, (4, 2)), label=r"theory $D/\lambda_i^2$"),
        Line2D(
            [], [], color=FAINT, marker="D", linestyle="none", markeredgecolor="black",
            markersize=4.5, label=r"median $n^*_i$",
        ),
    ]  # fmt: skip
