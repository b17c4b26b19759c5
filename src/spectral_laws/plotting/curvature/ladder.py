"""The curvature ladder: what each approximation between exact and Kronecker curvature costs."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats

from spectral_laws.errors import DataError
from spectral_laws.palette import FAINT, KIND_COLORS
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    LAYER,
    describe_layers,
    draw_strip,
    label_logarithmic,
    main_rows,
    median_handle,
    reference,
    some_fits,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, empty_panel, minus, styled, view_points
from spectral_laws.plotting.tables import groups
from spectral_laws.settings.roles import GAPS

_EMPIRICAL = {
    "exact/gauss_newton": "exact /\nGauss-Newton",
    "gauss_newton/fisher": "Gauss-Newton /\nFisher",
    "fisher/positions": "Fisher /\npositions",
    "positions/kronecker": "positions /\nKronecker",
    "exact/kronecker": "exact /\nKronecker",
}
_TRUE = {
    "gauss_newton/positions_true": "Gauss-Newton /\npositions",
    "positions_true/kronecker_true": "positions /\nKronecker",
    "exact/kronecker_true": "exact /\nKronecker",
}
RATIOS = _EMPIRICAL | _TRUE
"""Ratios in the order they are drawn, with their names."""
_GAP = 0.5  # between empirical and true gradients
_KINDS = {"conv": "conv", "linear": "all linear", "head": "head"}
"""Kinds and their names: linear holds attention and MLP blocks, which other figures have apart."""
_COLORS = KIND_COLORS | {"linear": "0.45"}
_WHOLE = {"c": (GAPS["kronecker"], "empirical"), "d": (GAPS["kronecker_true"], "true")}
"""Panels of the gap against alpha: ratio and the Fisher whose gradients make it."""


@styled
def draw(
    ladder: pd.DataFrame,
    exponents: pd.DataFrame,
    experiments: pd.DataFrame,
    *,
    confidence: float = 0.95,
) -> Figure:
    """Every rung's ratio and its slope in sigma, over the layers of all architectures.

    (a) Median over directions of the ratio of one rung to the next. (b) Slope of the log of that
    ratio on log sigma: 0 where the approximation does not change alpha. Faint points: one layer of
    one seed; large ones: median over layers, mean over seeds with Student's interval. Left:
    gradients at the observed labels (empirical); right: their expectation over the model's own
    labels (true). The last ratio of each part is the product of those before it. (c), (d) Distance
    of alpha from 2 against |log10| of that last ratio, with Spearman's correlation.
    """
    rows = main_rows(ladder, experiments, name="ladder")
    unknown = sorted(set(rows["ratio"]) - set(RATIOS))
    if unknown:
        raise DataError(f"ladder table: unknown ratio {', '.join(unknown)}")
    fits = some_fits(rows, name="ladder")
    figure = Figure(figsize=(TEXT_WIDTH, 6.6), layout="constrained")
    grid = figure.add_gridspec(3, 2)
    upper = figure.add_subplot(grid[0, :])
    lower = figure.add_subplot(grid[1, :], sharex=upper)
    upper.tick_params(labelbottom=False)
    _draw_value(upper, fits, "median", confidence=confidence, logarithmic=True)
    _draw_value(lower, fits, "slope", confidence=confidence, logarithmic=False)
    for axis, level in ((upper, 1.0), (lower, 0.0)):
        view_points(axis, level)
        reference(axis, level)
    low, high = upper.get_ylim()
    upper.set_ylim(low, high * (high / low) ** 0.1)  # room for the two titles
    label_logarithmic(upper)
    upper.set_ylabel("ratio, median over directions")
    lower.set_ylabel(r"slope of log ratio on log $\sigma$")
    upper.set_title(f"(a) {describe_layers(rows)}")
    lower.set_title(_counts(rows, fits))
    places = _places()
    lower.set_xticks([*places.values()], [*RATIOS.values()], fontsize=SMALL)
    lower.tick_params(axis="x", length=0)
    upper.tick_params(axis="x", length=0)
    lower.set_xlim(-0.6, max(places.values()) + 0.6)
    for axis in (upper, lower):
        axis.axvline(len(_EMPIRICAL) - 0.5 + _GAP / 2, color=FAINT, linewidth=0.6)
    for x, text in ((2.0, "empirical Fisher's gradients"), (6.5, "true Fisher's gradients")):
        upper.text(
            x, 0.99, text, transform=upper.get_xaxis_transform(), ha="center", va="top",
            fontsize=SMALL + 0.5, color="0.35",
        )  # fmt: skip
    for column, letter in enumerate(_WHOLE):
        _draw_gap(figure.add_subplot(grid[2, column]), rows, exponents, letter)
    figure.legend(handles=_handles(fits), loc="outside upper center", ncols=4)
    return figure


def gap_and_distance(rows: pd.DataFrame, exponents: pd.DataFrame, ratio: str) -> pd.DataFrame:
    """Layers with columns gap, |log10| of the median ratio, and distance, |alpha - 2|.

    Those that have both an exponent and a positive ratio.
    """
    gaps = rows[(rows["ratio"] == ratio) & (rows["median"] > 0)]
    alphas = exponents.loc[exponents["final"].astype(bool), [*LAYER, "alpha"]].dropna()
    layers = gaps.merge(alphas, on=list(LAYER), validate="one_to_one")
    return layers.assign(gap=np.log10(layers["median"]).abs(), distance=(layers["alpha"] - 2).abs())


def _draw_gap(axis: Axes, rows: pd.DataFrame, exponents: pd.DataFrame, letter: str) -> None:
    ratio, fisher = _WHOLE[letter]
    layers = gap_and_distance(rows, exponents, ratio)
    axis.set_title(f"({letter}) {fisher} Fisher, {len(layers)} layers and seeds")
    if layers.empty:
        empty_panel(axis, "No layer has both a ratio and an exponent.")
        return
    for (kind,), part in groups(layers, "kind"):
        axis.plot(part["distance"], part["gap"], "o", color=_COLORS[kind], markersize=2.6,
                  markeredgecolor="white", markeredgewidth=0.25)  # fmt: skip
    axis.set(xlabel=r"distance $|\alpha-2|$",
             ylabel=r"gap $|\log_{10}$ (exact / Kronecker)$|$")  # fmt: skip
    axis.margins(y=0.15)
    if len(layers) > 2:
        r = stats.spearmanr(layers["distance"], layers["gap"]).statistic
        write_corner(axis, f"Spearman's r = {minus(f'{r:.2f}')}")


def _places() -> dict[str, float]:
    return {name: i + _GAP * (name in _TRUE) for i, name in enumerate(RATIOS)}


def _draw_value(
    axis: Axes, fits: pd.DataFrame, value: str, *, confidence: float, logarithmic: bool
) -> None:
    kinds = _kinds(fits)
    step = 0.8 / len(kinds)
    if logarithmic:
        axis.set_yscale("log")
    for ratio, place in _places().items():
        mine = fits[fits["ratio"] == ratio]
        if mine.empty:
            axis.text(place, 0.5, "none", transform=axis.get_xaxis_transform(), ha="center",
                      color="0.35", fontsize=SMALL)  # fmt: skip
        for i, kind in enumerate(kinds):
            draw_strip(
                axis, place + step * (i - (len(kinds) - 1) / 2), mine[mine["kind"] == kind], value,
                color=_COLORS[kind], confidence=confidence, width=0.75 * step,
                logarithmic=logarithmic,
            )  # fmt: skip


def _kinds(fits: pd.DataFrame) -> list[str]:
    return [kind for kind in _KINDS if (fits["kind"] == kind).any()]


def _counts(rows: pd.DataFrame, fits: pd.DataFrame) -> str:
    missing = len(rows) - len(fits)
    return "(b)" + (f" {missing:,} of {len(rows):,} ratios have no fit" if missing else "")


def _handles(fits: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=_COLORS[kind], marker="o", linestyle="none", label=_KINDS[kind])
        for kind in _kinds(fits)
    ]
    return [*handles, median_handle()]
