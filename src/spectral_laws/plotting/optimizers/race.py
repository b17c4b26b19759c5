"""Test accuracy or loss of all methods against epochs and against seconds of training."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from spectral_laws.errors import DataError
from spectral_laws.plotting.optimizers.panels import (
    ACCURACY,
    Look,
    Measure,
    describe,
    divergence_handle,
    looks,
    measures_of,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, TEXT_WIDTH, empty_panel, styled, widened
from spectral_laws.plotting.tables import groups, summarise_seeds

_HIGH = (90.0, 80.0)
"""Where every method ends above the first, accuracies are drawn from the second on (percent)."""


@styled
def draw(
    race: pd.DataFrame,
    race_times: pd.DataFrame,
    *,
    confidence: float = 0.95,
) -> Figure:
    """Learning curves of all methods, one column of two panels per race.

    Above against epochs; below the same curves against the seconds of all steps up to each epoch,
    without the tests (see :func:`training_seconds`). Lines: mean over seeds; bands: Student's
    interval. A cross stands where the first training of a method diverges: accuracies go on with
    what it was left with, a loss has no mean from there on. Where every method ends above 90 % the
    accuracy axis starts at 80 %, so that the ends can be told apart.
    """
    measures = measures_of(race)
    seconds = training_seconds(race_times)
    styles = looks(race["method"])
    columns = min(len(measures), 2)
    blocks = -(-len(measures) // columns)
    header = 0.3 + 0.16 * -(-(len(styles) + 2) // columns)
    size = (COLUMN_WIDTH if columns == 1 else TEXT_WIDTH, 4.0 * blocks + header)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2 * blocks, columns, squeeze=False)
    for i, (name, measure) in enumerate(measures.items()):
        block, column = divmod(i, columns)
        rows = race[race["race"] == name]
        curves = learning_curves(rows, seconds, measure, confidence=confidence)
        upper, lower = axes[2 * block, column], axes[2 * block + 1, column]
        for axis, x in ((upper, "epoch"), (lower, "seconds")):
            _draw_curves(axis, curves, x, styles)
            if not curves.empty:
                axis.set_ylim(*curves_view(curves, measure))
            axis.set_ylabel(measure.label)
        upper.set_title(describe(rows, name, measure, width=60))
        upper.set_xlabel("epochs")
        upper.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        lower.set_xlabel("seconds of training, without tests")
        lower.set_xscale("log")
        _label_seconds(lower)
        if curves.empty:
            for axis in (upper, lower):
                empty_panel(axis, "a training of every method diverged in its first epoch")
    if len(measures) % columns:
        for spare in axes[2 * blocks - 2 :, -1]:
            spare.remove()
    figure.legend(handles=_handles(race, styles, confidence), loc="outside upper center",
                  ncols=columns)  # fmt: skip
    return figure


def training_seconds(race_times: pd.DataFrame) -> pd.DataFrame:
    """Columns race, method, epoch, seconds: of all steps until the end of that epoch.

    The sum over epochs of the median over seeds: neither a pause of one training counts nor, as
    long as most go on, that a diverged one takes no more time.
    """
    key = ["race", "method"]
    medians = race_times.groupby([*key, "epoch"], sort=True)["seconds"].median().reset_index()
    return medians.assign(seconds=medians.groupby(key)["seconds"].cumsum())


def learning_curves(
    rows: pd.DataFrame, seconds: pd.DataFrame, measure: Measure, *, confidence: float
) -> pd.DataFrame:
    """Mean over seeds per method and epoch of one race, in the measure's unit of the figure.

    Returns:
        Columns method, epoch, seconds, centre, low, high, seeds, diverged (whether any training
        has). Epochs in which a training has no value any more are left out, together with all
        later ones.

    Raises:
        DataError: if a method's seconds are missing.
    """
    parts = []
    for (race, method), mine in groups(rows, "race", "method"):
        scaled = mine.assign(value=measure.scale * mine[measure.column])
        gone = scaled.loc[scaled["value"].isna(), "epoch"].min()
        kept = scaled[~(scaled["epoch"] >= gone)] if np.isfinite(gone) else scaled
        if kept.empty:
            continue
        curve = summarise_seeds(
            kept, ["method", "epoch"], "value", confidence=confidence, bounds=measure.bounds
        )
        # A lost training is marked where its curve ends too.
        lost = scaled.groupby("epoch")["diverged"].any()
        if np.isfinite(gone):
            lost[curve["epoch"].max()] = True
        curve["diverged"] = curve["epoch"].map(lost).astype(bool)
        spent = seconds[(seconds["race"] == race) & (seconds["method"] == method)]
        timed = curve.merge(spent[["epoch", "seconds"]], on="epoch", how="left")
        if timed["seconds"].isna().any():
            raise DataError(f"race_times table: no times of {method!r} in race {race!r}")
        parts.append(timed)
    columns = ["method", "epoch", "centre", "low", "high", "seeds", "diverged", "seconds"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _draw_curves(axis: Axes, curves: pd.DataFrame, x: str, styles: dict[str, Look]) -> None:
    for order, (method, look) in enumerate(styles.items()):
        curve = curves[curves["method"] == method]
        if curve.empty:
            continue
        places = curve[x].to_numpy(dtype=np.float64)
        axis.fill_between(places, curve["low"], curve["high"], color=look.color, alpha=0.13,
                          linewidth=0, zorder=1)  # fmt: skip
        axis.plot(places, curve["centre"], color=look.color, marker=look.marker, markevery=[-1],
                  markersize=3.6, zorder=3 + 0.01 * order)  # fmt: skip
        lost = curve[curve["diverged"]].head(1)
        axis.plot(lost[x], lost["centre"], color=look.color, marker="x", markersize=6,
                  markeredgewidth=1.2, linestyle="none", zorder=5)  # fmt: skip


def curves_view(curves: pd.DataFrame, measure: Measure) -> tuple[float, float]:
    """Limits that hold all curves; accuracies that all end above 90 % are seen from 80 % on."""
    end, start = _HIGH
    ends = curves.loc[curves.groupby("method")["epoch"].idxmax(), "centre"]
    if measure is not ACCURACY or ends.min() <= end:
        return widened(curves["centre"], curves[["low", "high"]])
    seen = curves[curves["centre"] >= start]
    return start, widened(seen["centre"], seen[["low", "high"]])[1]


def _label_seconds(axis: Axes) -> None:
    """Plain numbers on a logarithmic axis: seconds of trainings are seldom many decades apart."""
    low, high = axis.get_xlim()
    span = np.log10(high / low)
    between = (1.0,) if span > 2.5 else (1.0, 3.0) if span > 1 else (1.0, 2.0, 5.0)
    axis.xaxis.set_major_locator(LogLocator(subs=between))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _handles(race: pd.DataFrame, styles: dict[str, Look], confidence: float) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, markersize=3.6, label=look.name)
        for look in styles.values()
    ]
    label = f"mean over seeds; band: {100 * confidence:g} % interval"
    handles.append(Line2D([], [], color="0.3", linewidth=1.0, label=label))
    if race["diverged"].any():
        handles.append(divergence_handle("first training diverges"))
    return handles
