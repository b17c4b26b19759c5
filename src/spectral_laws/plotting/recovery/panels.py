"""What the recovery figures share: choosing studies, points with intervals, theory, guides."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from spectral_laws.errors import DataError
from spectral_laws.fitting.recovery_windows import squared_weights
from spectral_laws.palette import FAINT, FEATURES
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import label_decades, widened
from spectral_laws.plotting.tables import plural, summarise_seeds

_REACH = 0.4  # intervals are followed for this share of the range of the points
GUIDE = (0, (1, 1.5))
"""Dash of a guide to the eye: a slope without a level."""
STEPS = (0, (4, 1.5))
"""Dash of the paper's laws, which hold up to a constant."""

Vector = NDArray[np.float64]


def of_study(table: pd.DataFrame, study: str, *, name: str) -> pd.DataFrame:
    """The rows of one study; a DataError names those there are if it is not among them."""
    rows = table[table["study"] == study]
    if rows.empty:
        known = ", ".join(dict.fromkeys(table["study"]))
        raise DataError(f"{name} table: no study {study!r}, there are {known}")
    return rows


def of_largest_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest d."""
    largest: pd.DataFrame = rows[rows["dimension"] == rows["dimension"].max()]
    return largest


def of_layer(metrics: pd.DataFrame, layer: str) -> pd.DataFrame:
    """The rows of one second layer; DataError if there are none."""
    rows = metrics[metrics["second_layer"] == layer]
    if rows.empty:
        raise DataError(f"metrics table: no rows with second_layer {layer!r}")
    return rows


def complete(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Rows of the directions (of each dimension) for which no seed lacks ``value``."""
    known = rows.groupby(["dimension", "direction"])[value].transform(lambda v: v.notna().all())
    return rows[known.astype(bool)]


def spread(values: Iterable[int], *, shown: int) -> list[int]:
    """At most ``shown`` of the values, evenly over their order, ends included."""
    ordered = sorted(set(values))
    if len(ordered) <= shown:
        return ordered
    picks = np.linspace(0, len(ordered) - 1, shown).round().astype(int)
    return [ordered[i] for i in picks]


def staircases(rows: pd.DataFrame) -> tuple[Vector, Vector, Vector]:
    """The paper's staircases of one teacher family, as steps in n.

    Returns:
        n_i = D / lambda_i^2 in increasing order; the recovered count m(n) from n_i on; the tail
        sum of lambda_j^2 over j > m(n) from n_i on. Below n_1 they are 0 and 1.
    """
    first = rows.iloc[0]
    squares = squared_weights(int(first["n_directions"]), float(first["gamma"]))
    limits = float(first["feature_dimension"]) / squares
    # Where gamma = 0 all steps are at one n: the curve goes through each of them upright.
    tails = np.append(np.cumsum(squares[::-1])[::-1], 0.0)[1:]
    return limits, np.arange(1.0, squares.size + 1), tails


def dodged(x: ArrayLike, rank: int, count: int, *, logarithmic: bool) -> Vector:
    """``x`` of the curve ``rank`` of ``count``, set side by side within 0.4 of a grid step."""
    places = np.log(np.asarray(x)) if logarithmic else np.asarray(x, dtype=np.float64)
    step = float(np.median(np.diff(places))) if places.size > 1 else 0.0
    places = places + 0.4 * step * (rank - (count - 1) / 2) / count
    return np.exp(places) if logarithmic else places


def draw_points(
    axis: Axes,
    x: ArrayLike,
    points: pd.DataFrame,
    *,
    hollow: bool = False,
    **line: Any,  # noqa: ANN401
) -> None:
    """Means over seeds with their intervals, from :func:`.tables.summarise_seeds`."""
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "elinewidth": 0.6, "capsize": 0}
    if hollow:
        style |= {"markerfacecolor": "white"}
    centre, bars = points["centre"].to_numpy(np.float64), bar_lengths(points)
    axis.errorbar(np.asarray(x), centre, yerr=bars, **({"zorder": 3} | style | line))


def draw_curve(
    axis: Axes,
    rows: pd.DataFrame,
    measured: str,
    predicted: str,
    *,
    place: tuple[int, int],
    exponent_axis: bool,
    confidence: float,
    logarithmic: bool,
    **points: Any,  # noqa: ANN401
) -> None:
    """One measured quantity of one d against n as points, and its prediction as a line.

    Both are means over seeds: geometric ones of errors (``logarithmic``), else of a quantity in
    [0, 1]. Both are moved aside by their ``place``, the rank of this curve and number of curves.
    x is log n / log d (``exponent_axis``) or n / D.
    """
    options: dict[str, Any] = {"confidence": confidence, "logarithmic": logarithmic}
    if not logarithmic:
        options["bounds"] = (0.0, 1.0)
    means = summarise_seeds(rows, ["sample_size"], measured, **options)
    theory = summarise_seeds(rows, ["sample_size"], predicted, **options)
    first = rows.iloc[0]
    sizes = means["sample_size"].to_numpy(dtype=np.float64)
    x = (
        np.log(sizes) / np.log(float(first["dimension"]))
        if exponent_axis
        else sizes / float(first["feature_dimension"])
    )
    x = dodged(x, *place, logarithmic=not exponent_axis)
    axis.plot(x, theory["centre"], color=points.get("color"), linewidth=0.9, zorder=2)
    draw_points(axis, x, means, **points)


def draw_guide(
    axis: Axes, ends: Sequence[float], through: tuple[float, float], slope: float
) -> None:
    """A dotted power law of given slope through a point, over ``ends``, behind everything."""
    x = np.array([min(ends), max(ends)], dtype=np.float64)
    y = through[1] * (x / through[0]) ** slope
    axis.plot(x, y, color=FAINT, linestyle=GUIDE, linewidth=0.9, zorder=0)


def label_dimensions(axis: Axes, dimensions: Iterable[float]) -> None:
    """Label a logarithmic x axis at the dimensions themselves, as many as there is room for."""
    ordered = sorted(set(dimensions))
    room = math.log(ordered[-1] / ordered[0]) / 11 if len(ordered) > 1 else 1.0
    ticks: list[float] = []
    for dimension in ordered[::-1]:
        if not ticks or math.log(ticks[-1] / dimension) >= room:
            ticks.append(dimension)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks(ordered, minor=True)
    axis.xaxis.set_minor_formatter(NullFormatter())


def finish_logarithmic(axis: Axes, *, floor: float = 0.0) -> None:
    """Limits of a logarithmic y axis by its points and lines, and readable labels.

    Intervals are followed as far as they do not dwarf the points (:func:`.style.widened`). A panel
    without a point above ``floor``, the lowest limit, says so instead.
    """
    lines = [np.asarray(line.get_ydata(), np.float64) for line in axis.lines]
    points = np.concatenate([*lines, np.empty(0)])
    ends = [points]
    for container in axis.containers:
        if isinstance(container, ErrorbarContainer):
            for bars in container.lines[2]:
                ends += [np.asarray(bar, np.float64)[:, 1] for bar in bars.get_segments()]
    kept, reach = (v[np.isfinite(v) & (v > floor)] for v in (points, np.concatenate(ends)))
    if not kept.size:
        axis.set(yscale="linear", yticks=[])
        axis.text(0.5, 0.5, "nothing positive", transform=axis.transAxes, ha="center", color="0.35")
        return
    axis.set_yscale("log")
    low, high = widened(np.log(kept), np.log(reach), reach=_REACH)
    axis.set_ylim(max(math.exp(low), floor), math.exp(high))
    label_logarithmic(axis)


def label_logarithmic(axis: Axes) -> None:
    """Label logarithmic axes at decades; in plain numbers where they span fewer than two."""
    label_decades(axis)
    for one, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        span = math.log10(max(limits) / min(limits)) if one.get_scale() == "log" else math.inf
        if span < 1.8 and min(limits) > 0.005 and max(limits) < 5000:
            steps = LogLocator(subs=(1.0, 2.0, 5.0)) if span > 0.7 else MaxNLocator(4)
            one.set_major_locator(steps)
            one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def describe(rows: pd.DataFrame, *, dimension: bool = False) -> str:
    """What was drawn: features, degree, gamma, seeds; with d and D, on two lines."""
    first = rows.iloc[0]
    kind = "Gaussian features" if first["degree"] == 1 else FEATURES[str(first["features"])]
    if dimension:
        kind += f"\n$d$ = {first['dimension']}, $D$ = {first['feature_dimension']:,}"
    return rf"{kind}, $q$ = {first['degree']}, $\gamma$ = {first['gamma']:g}, {seed_range(rows)}"


def seed_range(rows: pd.DataFrame) -> str:
    """Number of seeds of each study and dimension in words: '5 seeds', or a range of them."""
    counts = sorted(rows.groupby(["study", "dimension"])["seed"].nunique().unique())
    if len(counts) == 1:
        return plural(int(counts[0]), "seed")
    return f"{counts[0]}\N{EN DASH}{counts[-1]} seeds"


def size_handles(
    rows: pd.DataFrame, colors: dict[int, str], symbols: dict[int, str]
) -> list[Line2D]:
    """Legend entries for the input dimensions of a table."""
    sizes = rows.groupby("dimension")[["feature_dimension", "n_directions"]].first()
    return [
        Line2D([], [], color=colors[d], marker=symbols[d], linestyle="none",
               label=rf"$d$ = {d}, $D$ = {size:,}, $d_1$ = {width}")
        for d, size, width in sizes.itertuples()
    ]  # fmt: skip


def kind_handle(label: str, **line: Any) -> Line2D:  # noqa: ANN401
    """A legend entry for a kind of mark, in grey unless it has a colour of its own."""
    return Line2D([], [], **({"color": FAINT, "label": label} | line))


def equivalent_identity(table: pd.DataFrame, *, name: str) -> pd.DataFrame:
    """Rows of studies with equivalent features, identity readout and no noise, if any."""
    plain = (table["readout"] == "identity") & (table["noise"] == 0)
    rows = table[plain & (table["features"] == "equivalent")]
    if rows.empty:
        raise DataError(f"{name} table: no study with equivalent features and identity readout")
    return rows
