"""Exponent of the test error against the decay of the strengths."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.errors import DataError
from spectral_laws.fitting.recovery_windows import (
    CRITICAL,
    MINIMUM_SIZES,
    error_window,
    law_of_error,
    tail_law,
)
from spectral_laws.fitting.slopes import slope
from spectral_laws.palette import LAYER_COLORS, LAYER_NAMES, THEORY
from spectral_laws.plotting.power_fits import Bootstrap, seed_slope
from spectral_laws.plotting.recovery.panels import (
    equivalent_identity,
    kind_handle,
    of_layer,
    seed_range,
)
from spectral_laws.plotting.style import TEXT_WIDTH, markers, styled
from spectral_laws.plotting.tables import groups, plural, shorten


class MeasuredExponent(NamedTuple):
    """Exponent of one simulated study and dimension; the interval is None from few seeds.

    ``tail`` is the exponent of the tail sum over the same window.
    """

    study: str
    dimension: int
    gamma: float
    n_directions: int
    slope: float
    interval: tuple[float, float] | None
    tail: float


@styled
def draw(
    error_exponents: pd.DataFrame,
    metrics: pd.DataFrame,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Figure:
    """Exponent in n of the MSE (gamma > 1/2) or of 1 - MSE (gamma < 1/2).

    Top: against gamma, the paper's asymptotic law -1 + 1/(2 gamma) (line), and from the sharp
    theory the tail sum and the three second layers, from the smallest number of directions d1
    (hollow) to the largest (filled), side by side at each gamma. Framed: measured in the Gaussian
    equivalent with the independent second layer, with bootstrap intervals, joined to the exponent
    of the tail sum over the same window. Bottom: the distance of
    the theory's exponents to the asymptotic one, against d1, mean over draws of the signs.
    """
    table = error_exponents[error_exponents["gamma"] != CRITICAL]
    if table.empty:
        raise DataError("error_exponents table: no gamma with a power law, nothing to draw")
    equivalent = equivalent_identity(of_layer(metrics, "independent"), name="metrics")
    measured = measured_exponents(equivalent, bootstrap=Bootstrap(confidence, resamples))
    steep = [False, True] if (table["gamma"] < CRITICAL).any() else [True]
    if not (table["gamma"] > CRITICAL).any():
        steep = [False]
    figure = Figure(figsize=(TEXT_WIDTH, 5.2), layout="constrained")
    axes = figure.subplots(2, len(steep), squeeze=False)
    for column, above in enumerate(steep):
        rows = table[(table["gamma"] > CRITICAL) == above]
        mine = [one for one in measured if (one.gamma > CRITICAL) == above]
        quantity = "MSE" if above else r"$1-$MSE"
        condition = r"$\gamma>1/2$" if above else r"$\gamma<1/2$"
        _draw_against_gamma(axes[0, column], rows, mine)
        axes[0, column].set_title(f"({'ab'[column]}) {condition}: {quantity}")
        axes[0, column].set_ylabel(f"exponent of {quantity} in $n$")
        _draw_against_width(axes[1, column], rows)
        axes[1, column].set_title(
            f"({'cd'[column]}) distance to the asymptotic law, {_draws(rows)}"
        )
        axes[1, column].set_ylabel("exponent $-$ asymptotic exponent")
    widths = sorted(table["n_directions"].unique())
    handles = [kind_handle(r"asymptotic, $-1+1/(2\gamma)$", color=THEORY)]
    handles += [
        kind_handle(name, color=LAYER_COLORS[layer])
        for layer, name in LAYER_NAMES.items()
        if (table["second_layer"] == layer).any()
    ]
    handles += [
        kind_handle(f"$d_1$ = {widths[-1]}", marker="o", linestyle="none"),
        kind_handle(f"$d_1$ = {widths[0]}", marker="o", markerfacecolor="white",
                    linestyle="none"),
    ]  # fmt: skip
    handles += _measured_handles(measured)
    seeds = seed_range(equivalent)
    framed = (
        f"framed: measured in the Gaussian equivalent ({seeds}), joined to the tail sum over the "
        "same window"
    )
    title = framed if measured else None
    figure.legend(handles=handles, title=title, loc="outside upper center", ncols=4)
    return figure


def asymptotic(gamma: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The paper's exponent, -1 + 1/(2 gamma), of the MSE above 1/2 and of 1 - MSE below."""
    return np.asarray(-1.0 + 1.0 / (2.0 * np.asarray(gamma, dtype=np.float64)))


def window(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one study and dimension inside the window of the law, the claims' own."""
    first = rows.iloc[0]
    width, gamma = int(first["n_directions"]), float(first["gamma"])
    ends = error_window(width, gamma, float(first["feature_dimension"]))
    kept: pd.DataFrame = rows[rows["sample_size"].between(*ends)] if ends else rows.head(0)
    return kept


def tail_exponent(rows: pd.DataFrame) -> float:
    """Exponent of the tail sum, or of 1 - tail sum, over the sample sizes of ``rows``."""
    first, sizes = rows.iloc[0], rows["sample_size"]
    width, gamma = int(first["n_directions"]), float(first["gamma"])
    law = tail_law(sizes.min(), sizes.max(), float(first["feature_dimension"]), width, gamma)
    return slope(*law)


def measured_exponents(metrics: pd.DataFrame, *, bootstrap: Bootstrap) -> list[MeasuredExponent]:
    """Least-squares exponents of the error averaged over seeds, inside :func:`window`.

    Studies with fewer than three sample sizes inside, or without a power law, are left out.
    """
    found = []
    for (study, dimension), group in groups(metrics, "study", "dimension"):
        gamma = float(group["gamma"].iloc[0])
        rows = window(group)
        if gamma in (0.0, CRITICAL) or rows["sample_size"].nunique() < MINIMUM_SIZES:
            continue
        values = rows.assign(value=law_of_error(rows["mse"].to_numpy(np.float64), gamma))
        exponent, interval = seed_slope(values, "value", bootstrap=bootstrap)
        if not math.isnan(exponent):
            width, tail = int(group["n_directions"].iloc[0]), tail_exponent(rows)
            found.append(
                MeasuredExponent(study, int(dimension), gamma, width, exponent, interval, tail)
            )
    return found


def _draw_against_gamma(axis: Axes, rows: pd.DataFrame, measured: list[MeasuredExponent]) -> None:
    gammas = np.array([*rows["gamma"], *(one.gamma for one in measured)], dtype=np.float64)
    low, high = float(gammas.min()), float(gammas.max())
    pad = 0.08 * ((high - low) or 0.2)
    fine = np.linspace(low - pad, high + pad, 200)
    axis.plot(fine, asymptotic(fine), color=THEORY, zorder=1)
    widths = sorted(rows["n_directions"].unique())
    ends = rows[rows["n_directions"].isin([widths[0], widths[-1]])]
    means = ends.groupby(["second_layer", "gamma", "n_directions"], as_index=False)[
        ["exponent"]
    ].mean()
    # The kinds of one gamma stand side by side, from few directions (hollow) to many (filled).
    for rank, layer in enumerate(LAYER_NAMES):
        for (gamma,), pair in groups(means[means["second_layer"] == layer], "gamma"):
            x = gamma + 0.22 * pad * (rank - 1.5)
            color = LAYER_COLORS[layer]
            axis.plot([x] * len(pair), pair["exponent"], color=color, linewidth=0.8, zorder=2)
            axis.plot(x, pair["exponent"].iloc[-1], "o", color=color, markersize=2.8, zorder=3)
            if len(pair) > 1:
                axis.plot(
                    x, pair["exponent"].iloc[0], "o", color=color, markersize=2.8,
                    markerfacecolor="white", zorder=3,
                )  # fmt: skip
    symbols = markers(dict.fromkeys(one.study for one in measured))
    for place, one in enumerate(measured):
        below, above = one.interval or (one.slope, one.slope)
        bar = [[max(one.slope - below, 0)], [max(above - one.slope, 0)]]
        x = one.gamma + pad * (0.6 + 0.25 * place)
        axis.plot([x, x], [one.tail, one.slope], color="black", linewidth=0.5, zorder=3)
        axis.plot(
            x, one.tail, symbols[one.study], color="black", markersize=2.6,
            markerfacecolor=LAYER_COLORS["tail"], zorder=5,
        )  # fmt: skip
        axis.errorbar(
            x, one.slope, yerr=bar, color="black", marker=symbols[one.study], markersize=4,
            markerfacecolor=LAYER_COLORS["independent"], linestyle="none", zorder=4,
        )  # fmt: skip
    axis.set_xlabel(r"decay of the strengths, $\gamma$")


def _draw_against_width(axis: Axes, rows: pd.DataFrame) -> None:
    gammas = sorted(rows["gamma"].unique())
    symbols = markers(gammas)
    gaps = rows.assign(gap=rows["exponent"] - asymptotic(rows["gamma"].to_numpy()))
    for layer in LAYER_NAMES:
        for gamma in gammas:
            mine = gaps[(gaps["second_layer"] == layer) & (gaps["gamma"] == gamma)]
            if len(mine):
                points = mine.groupby("n_directions")["gap"].mean()
                axis.plot(
                    points.index, points, color=LAYER_COLORS[layer], marker=symbols[gamma],
                    linewidth=0.6, markersize=2.8,
                )  # fmt: skip
    axis.axhline(0, color=THEORY, linewidth=0.8, zorder=0)
    handles = [
        kind_handle(rf"$\gamma$ = {gamma:g}", marker=symbols[gamma], linestyle="none")
        for gamma in gammas
    ]
    axis.legend(handles=handles, loc="best", ncols=len(handles), handlelength=1)
    axis.set(xscale="log", xlabel="number of directions, $d_1$")


def _measured_handles(measured: list[MeasuredExponent]) -> list[Line2D]:
    symbols = markers(dict.fromkeys(one.study for one in measured))
    face = LAYER_COLORS["independent"]
    handles = []
    for study, symbol in symbols.items():
        ours = [one for one in measured if one.study == study]
        dimensions = sorted(one.dimension for one in ours)
        label = f"{shorten(study)}, $d$ = {', '.join(str(d) for d in dimensions)}"
        label += f", $d_1$ = {ours[0].n_directions}"
        handles.append(
            kind_handle(label, color="black", marker=symbol, markerfacecolor=face,
                        markersize=4, linestyle="none")
        )  # fmt: skip
    return handles


def _draws(rows: pd.DataFrame) -> str:
    return plural(int(rows["seed"].nunique()), "draw") + " of the signs"
