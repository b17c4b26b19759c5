"""What each method gains over AdamW at the end of a race, and what its tuning cost."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from spectral_laws.errors import DataError
from spectral_laws.palette import THEORY
from spectral_laws.plotting.curvature.panels import median_handle
from spectral_laws.plotting.marks import bar_lengths, ends_of
from spectral_laws.plotting.optimizers.panels import (
    ACCURACY,
    REFERENCE,
    Look,
    Measure,
    describe,
    divergence_handle,
    last_epochs,
    looks,
    measures_of,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, minus, styled
from spectral_laws.plotting.tables import groups, summarise_seeds

PAPER_GAINS = (1.1, 3.5)
"""Points of accuracy that the paper's Spectral Newton gains over AdamW; claim B14's range."""

_REACH = 5.0  # the view is this many median gains wide on either side
_BAND = "0.9"


@styled
def draw(
    race: pd.DataFrame,
    tuning: pd.DataFrame,
    tuning_times: pd.DataFrame,
    *,
    confidence: float = 0.95,
) -> Figure:
    """Final test accuracy or loss of each method against AdamW's, with the cost of its tuning.

    Small points: trainings, paired by seed with AdamW's; a cross where one of the pair diverged,
    on the side of the one that did not if there is no difference. Large points: mean over seeds
    with Student's interval, where every pair has a difference; arrowheads are outside the view,
    and their values stand beside. Band: the paper's gains.
    """
    measures = measures_of(race)
    costs = tuning_costs(tuning, tuning_times)
    chosen = {(cost["race"], cost["method"]): cost for _, cost in costs.iterrows()}
    styles = looks(race["method"])
    counts = [race.loc[race["race"] == name, "method"].nunique() for name in measures]
    heights = [0.9 + 0.2 * count for count in counts]
    figure = Figure(figsize=(TEXT_WIDTH, 0.4 + sum(heights)), layout="constrained")
    axes = figure.subplots(
        len(measures), 2, squeeze=False, sharey="row", height_ratios=heights, width_ratios=(1, 1.25)
    )
    for (axis, side), (name, measure) in zip(axes, measures.items(), strict=True):
        rows = race[race["race"] == name]
        gains = reference_gains(rows, measure)
        means = _means(gains, confidence)
        methods = [method for method in styles if (rows["method"] == method).any()]
        for place, method in enumerate(methods):
            if (name, method) not in chosen:
                raise DataError(f"tuning table: no training of {method!r} in race {name!r}")
            gain = _gain_text(means.get(method), measure.decimals)
            if method == REFERENCE:
                gain = _level_text(rows, measure, confidence)
            _write_row(side, place, gain, chosen[name, method])
        _set_view(axis, gains, means, measure)
        for place, method in enumerate(methods):
            mine = gains[gains["method"] == method]
            _draw_method(axis, place, mine, means.get(method), styles[method])
        axis.set_yticks(range(len(methods)), [styles[method].name for method in methods])
        axis.set_ylim(len(methods) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.set_xlabel(measure.gain)
        axis.set_title(describe(rows, name, measure, width=50))
        _head_columns(side)
    figure.legend(handles=_handles(race, measures, confidence), loc="outside upper center", ncols=2)
    return figure


def reference_gains(rows: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Differences from AdamW at the last epoch of one race, paired by seed; positive is better.

    Returns:
        Columns method, seed, gain (missing where one of the two has no value), lost and
        reference_lost (whether the training and AdamW's diverged).

    Raises:
        DataError: if no training has a partner.
    """
    last = last_epochs(rows)[["race", "method", "seed", measure.column, "diverged"]]
    last = last.rename(columns={measure.column: "value", "diverged": "lost"})
    mine = last["method"] == REFERENCE
    reference = last.loc[mine, ["seed", "value", "lost"]]
    pairs = last[~mine].merge(reference, on="seed", suffixes=("", "_reference"), validate="m:1")
    if pairs.empty:
        name = rows["race"].iloc[0]
        raise DataError(f"race table: no training of race {name!r} has a partner of {REFERENCE!r}")
    gain = measure.sign * measure.scale * (pairs["value"] - pairs["value_reference"])
    lost = pairs["lost_reference"].astype(bool)
    return pairs[["method", "seed", "lost"]].assign(gain=gain, reference_lost=lost)


def tuning_costs(tuning: pd.DataFrame, tuning_times: pd.DataFrame) -> pd.DataFrame:
    """What each method was tuned to, and at what cost.

    Returns:
        Columns race, method, learning_rate, weight_decay (chosen), edge (lower or upper where the
        chosen learning rate is the least or greatest of several, else empty), trainings, diverged
        (how many), seconds (of all trainings).

    Raises:
        DataError: if a method has no choice, more than one, or no times.
    """
    spent = tuning_times.groupby(["race", "method"])["seconds"].sum()
    costs = []
    for (race, method), grid in groups(tuning, "race", "method"):
        best = grid[grid["chosen"].astype(bool)]
        if len(best) != 1:
            raise DataError(f"tuning table: {len(best)} choices of {method!r} in race {race!r}")
        if (race, method) not in spent.index:
            raise DataError(f"tuning_times table: no times of {method!r} in race {race!r}")
        rate, rates = float(best["learning_rate"].iloc[0]), grid["learning_rate"]
        ends = {rates.min(): "lower", rates.max(): "upper"}
        edge = ends.get(rate, "") if len(ends) > 1 else ""  # one rate has no edges
        costs.append(
            {
                "race": race,
                "method": method,
                "learning_rate": rate,
                "weight_decay": float(best["weight_decay"].iloc[0]),
                "edge": edge,
                "trainings": int(grid["trainings"].sum()),
                "diverged": int(grid["diverged"].sum()),
                "seconds": float(spent[race, method]),
            }
        )
    return pd.DataFrame(costs)


def _means(gains: pd.DataFrame, confidence: float) -> dict[str, pd.DataFrame]:
    """One row per method all of whose pairs have a difference."""
    return {
        method: summarise_seeds(rows, ["method"], "gain", confidence=confidence)
        for (method,), rows in groups(gains, "method")
        if rows["gain"].notna().all()
    }


def _set_view(
    axis: Axes, gains: pd.DataFrame, means: dict[str, pd.DataFrame], measure: Measure
) -> None:
    """Holds zero, the paper's band, and all but gains far beyond most others."""
    finite = gains["gain"].dropna().to_numpy(dtype=np.float64)
    typical = float(np.median(np.abs(finite))) if finite.size else 0.0
    ends = [end for mean in means.values() for end in ends_of(mean)]
    held = np.array([0.0, *finite, *ends])
    low, high = float(held.min()), float(held.max())
    if typical > 0:
        low, high = max(low, -_REACH * typical), min(high, _REACH * typical)
    if measure is ACCURACY:
        axis.axvspan(*PAPER_GAINS, color=_BAND, linewidth=0, zorder=0)
        high = max(high, PAPER_GAINS[1])
    pad = 0.06 * (high - low or 1.0)
    axis.set_xlim(low - pad, high + pad)
    axis.axvline(0, color=THEORY, linewidth=0.7, zorder=0)


def _draw_method(
    axis: Axes, place: int, gains: pd.DataFrame, mean: pd.DataFrame | None, look: Look
) -> None:
    """Trainings above the line of the method, their mean below."""
    low, high = axis.get_xlim()
    # A missing difference stands at the side of its loser: left if the method's training is lost.
    sides = pd.Series(np.where(gains["lost"], low, high), index=gains.index)
    for lost, rows in gains.groupby(gains["lost"] | gains["reference_lost"]):
        x = rows["gain"].fillna(sides[rows.index]).clip(low, high)
        axis.plot(x, np.full(len(x), place - 0.17), "x" if lost else "o", color=look.color,
                  markersize=3.4 if lost else 2.4, markeredgewidth=0.9 if lost else 0, alpha=0.7,
                  clip_on=False, zorder=3)  # fmt: skip
    if mean is None:
        return
    centre, _, _ = ends_of(mean)
    inside = low <= centre <= high
    if inside:
        axis.errorbar(centre, place + 0.17, xerr=bar_lengths(mean),
                      ecolor="black", elinewidth=0.8, capsize=1.6, zorder=3.5)  # fmt: skip
    shape = look.marker if inside else "<" if centre < low else ">"
    axis.plot(np.clip(centre, low, high), place + 0.17, shape, color=look.color, markersize=4.2,
              markeredgecolor="black", clip_on=False, zorder=4)  # fmt: skip


_PLACES = (0.0, 0.385, 0.51, 0.62, 0.785)
"""Of the columns of text, as shares of their width."""
_HEADS = ("mean [interval]", "rate", "decay", "runs", "tuning time (s)")
_EDGES = {"lower": " \N{DOWNWARDS ARROW}", "upper": " \N{UPWARDS ARROW}", "": ""}


def _write_row(side: Axes, place: int, gain: str, cost: pd.Series) -> None:
    """Mean gain, chosen values and cost of tuning of a method, in columns."""
    runs = f"{cost['trainings']}" + (f" ({cost['diverged']} div.)" if cost["diverged"] else "")
    rate = f"{cost['learning_rate']:g}{_EDGES[cost['edge']]}"
    texts = (gain, rate, f"{cost['weight_decay']:g}", runs, f"{cost['seconds']:.0f}")
    for x, text in zip(_PLACES, texts, strict=True):
        side.text(x, place, text, transform=side.get_yaxis_transform(), va="center",
                  fontsize=SMALL)  # fmt: skip


def _head_columns(side: Axes) -> None:
    side.set_axis_off()
    for x, text in zip(_PLACES, _HEADS, strict=True):
        side.text(x, 1.0, text, transform=side.transAxes, va="bottom", fontsize=SMALL,
                  fontweight="bold")  # fmt: skip


def _level_text(rows: pd.DataFrame, measure: Measure, confidence: float) -> str:
    """AdamW's own mean, as 'itself 96.93 [96.10, 97.76]'."""
    last = last_epochs(rows[rows["method"] == REFERENCE])
    own = last.assign(value=measure.scale * last[measure.column])
    if own["value"].isna().any():
        return "itself: no mean"
    mean = summarise_seeds(own, ["method"], "value", confidence=confidence)
    return f"itself {_gain_text(mean, measure.decimals).removeprefix('+')}"


def _gain_text(mean: pd.DataFrame | None, decimals: int) -> str:
    """'+0.72 [0.11, 1.33]', with one seed without interval."""
    if mean is None:
        return "no mean"
    centre, low, high = (
        round(value, decimals) + 0.0 for value in ends_of(mean)
    )  # no negative zero
    interval = f" [{low:.{decimals}f}, {high:.{decimals}f}]" if mean["seeds"].iloc[0] > 1 else ""
    return minus(f"{centre:+.{decimals}f}{interval}")


def _handles(
    race: pd.DataFrame, measures: dict[str, Measure], confidence: float
) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color="0.3", marker="o", markersize=2.4, linestyle="none",
               label="training, paired by seed"),
        median_handle(f"mean over seeds, {100 * confidence:g} % interval"),
        Line2D([], [], color="black", marker=r"$\downarrow\uparrow$", markersize=8,
               linestyle="none", label="least or greatest rate of the grid"),
    ]  # fmt: skip
    if ACCURACY in measures.values():
        low, high = PAPER_GAINS
        handles.append(Patch(color=_BAND, label=f"paper, Spectral Newton: {low:g} to {high:g}"))
    if race["diverged"].any():
        handles.append(divergence_handle("one of the pair diverged"))
    return handles
