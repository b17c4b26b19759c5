"""alpha from different parts of a layer's spectrum."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.palette import GROUP_COLORS
from spectral_laws.plotting.curvature.panels import (
    check_roles,
    draw_strip,
    fitted,
    groups_of,
    layer_count,
    main_models,
    median_handle,
    reference,
    some_fits,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, SMALL, styled, widened
from spectral_laws.plotting.tables import plural, seed_count

WINDOWS = {
    "top5": "first 5",
    "top10": "first 10",
    "top_k": "top k",
    "full": "all",
    "q1": "Q1",
    "q2": "Q2",
    "q3": "Q3",
    "q4": "Q4",
}
"""Windows in the order they are drawn, with their names."""
_GAP = 0.5


@styled
def draw(windows: pd.DataFrame, experiments: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """Exponents alpha of the leading 5, 10, top_k and all directions, and of quartiles of them.

    One panel per family of roles. Faint points: one layer of one seed; large ones: median over
    layers, mean over seeds with Student's interval. Layers are those of the experiment
    ``architectures`` and of every model that was measured beyond top_k directions. Below each
    window: the fits in it.
    """
    rows = check_roles(windows, name="windows")
    unknown = sorted(set(rows["window"]) - set(WINDOWS))
    if unknown:
        raise DataError(f"windows table: unknown window {', '.join(unknown)}")
    full = rows.loc[rows["window"] == "full", "model"]
    rows = rows[rows["model"].isin([*main_models(experiments), *full])]
    fits = some_fits(rows, name="windows")
    names = groups_of(fits)
    figure = Figure(figsize=(COLUMN_WIDTH, 1.4 * len(names) + 0.7), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    places = {name: i + _GAP * name.startswith("q") for i, name in enumerate(WINDOWS)}
    for axis, group in zip(axes, names, strict=True):
        counts = _draw_group(axis, rows[rows["group"] == group], places, confidence)
        below = [f"{name}\n{n}" for n, name in zip(counts, WINDOWS.values(), strict=True)]
        axis.set_xticks([*places.values()], below, fontsize=SMALL)
        axis.set_xlim(-0.6, max(places.values()) + 0.6)
    axes[-1].set_xlabel("directions in the fit (Q1 to Q4: quarters), number of fits")
    figure.supylabel(r"$\alpha$ of $h_k\sim\sigma_k^\alpha$ within the window", fontsize=7)
    figure.legend(handles=[median_handle()], loc="outside upper center")
    return figure


def _draw_group(
    axis: Axes, rows: pd.DataFrame, places: dict[str, float], confidence: float
) -> list[int]:
    """Draw one family of roles; the number of fits in each window."""
    fits = fitted(rows)
    group = str(rows["group"].iloc[0])
    color = GROUP_COLORS[group]
    reference(axis, 1, 2)
    summaries = {}
    for name, place in places.items():
        mine = fits[fits["window"] == name]
        summary = draw_strip(axis, place, mine, "alpha", color=color, confidence=confidence)
        if summary is not None:
            summaries[name] = summary
    alpha = fits["alpha"]
    inner = alpha[(alpha >= alpha.quantile(0.02)) & (alpha <= alpha.quantile(0.98))]
    low, high = widened([*inner, 1.0, 2.0], [end for s in summaries.values() for end in s[1:]])
    axis.set_ylim(low, high)
    cut = int(((alpha < low) | (alpha > high)).sum())
    note = f", {plural(cut, 'point')} outside" if cut else ""
    axis.set_title(f"{group}: {plural(layer_count(rows), 'layer')}, {seed_count(rows)}{note}")
    axis.tick_params(axis="x", length=0)
    return [int((fits["window"] == name).sum()) for name in places]
