"""The exponent alpha of every layer, in depth order."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.plotting.style import COLUMN_WIDTH, FAINT, KIND_COLORS, markers, styled, widened
from spectral_laws.plotting.tables import plural, require, seed_count, shorten

_COLUMNS = ("model", "seed", "layer_index", "layer", "kind", "status", "alpha", "alpha_low",
            "alpha_high")  # fmt: skip
_ROW = 0.15


@styled
def draw_curvature_alpha_by_layer(exponents: pd.DataFrame) -> Figure:
    """The exponent of h ~ sigma^alpha per layer with its bootstrap interval, one panel per model.

    Layers run from input (top) to output. Each seed has its marker; dashed lines stand at
    alpha = 1 and 2. A layer and seed without a fit is a cross at the left edge.

    Args:
        exponents: table of ``fit_exponents``.

    Raises:
        DataError: if a column is missing or no row has a fit.
    """
    require(exponents, _COLUMNS, name="exponents")
    if not (exponents["status"] == "fit").any():
        raise DataError("exponents table: no row has a fit, nothing to draw")
    models = list(dict.fromkeys(exponents["model"]))
    layers = [exponents.loc[exponents["model"] == model, "layer"].nunique() for model in models]
    height = _ROW * sum(layers) + 0.35 * len(models) + 0.8
    figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
    axes = figure.subplots(
        len(models), 1, squeeze=False, sharex=True,
        gridspec_kw={"height_ratios": [count + 1 for count in layers]},
    )[:, 0]  # fmt: skip
    seeds = sorted(exponents["seed"].unique())
    for axis, model in zip(axes, models, strict=True):
        _draw_model(axis, exponents[exponents["model"] == model], seeds)
    fits = exponents[exponents["status"] == "fit"]
    low, high = widened([*fits["alpha"], 1, 2], [fits["alpha_low"], fits["alpha_high"]])
    axes[-1].set_xlim(low - 0.06 * (high - low), high)  # room for the crosses on the left
    axes[-1].set_xlabel(r"$\alpha$ of $h_k \sim \sigma_k^{\alpha}$, with bootstrap interval")
    figure.legend(handles=_handles(exponents, seeds), loc="outside upper center", ncols=3)
    return figure


def _draw_model(axis: Axes, rows: pd.DataFrame, seeds: list[int]) -> None:
    layers = rows.drop_duplicates("layer").sort_values("layer_index")["layer"].tolist()
    place = {layer: i for i, layer in enumerate(layers)}
    shifts = dict(zip(seeds, np.linspace(-0.25, 0.25, len(seeds) + 2)[1:-1], strict=True))
    symbols = markers(seeds)
    for value in (1, 2):
        axis.axvline(value, color=FAINT, linestyle=(0, (4, 2)), linewidth=0.8, zorder=0)
    for i in range(0, len(layers), 2):
        axis.axhspan(i - 0.5, i + 0.5, color="0.955", linewidth=0, zorder=-1)
    for _, part in rows.groupby(["seed", "kind"]):
        seed, kind = part["seed"].iloc[0], part["kind"].iloc[0]
        y = part["layer"].map(place).to_numpy() + shifts[seed]
        fit = (part["status"] == "fit").to_numpy()
        good = part[fit]
        centre = good["alpha"].to_numpy()
        ends = [centre - good["alpha_low"], good["alpha_high"] - centre]
        axis.errorbar(
            centre, y[fit], xerr=np.maximum(np.stack(ends), 0), linestyle="none",
            marker=symbols[seed], markersize=2.8, color=KIND_COLORS[kind], elinewidth=0.6,
            capsize=0,
        )  # fmt: skip
        axis.plot(
            np.full((~fit).sum(), 0.015), y[~fit], "x", color=KIND_COLORS[kind],
            transform=axis.get_yaxis_transform(),
        )  # fmt: skip
    axis.set_yticks(range(len(layers)), [shorten(str(layer)) for layer in layers], fontsize=6)
    axis.set_ylim(len(layers) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    model = shorten(str(rows["model"].iloc[0]))
    axis.set_title(f"{model}: {plural(len(layers), 'layer')}, {seed_count(rows)}", loc="left")


def _handles(exponents: pd.DataFrame, seeds: list[int]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=color, marker="o", linestyle="none", label=kind)
        for kind, color in KIND_COLORS.items()
        if (exponents["kind"] == kind).any()
    ]
    handles += [
        Line2D([], [], color=FAINT, marker=symbol, linestyle="none", label=f"seed {seed}")
        for seed, symbol in markers(seeds).items()
    ]
    if (exponents["status"] != "fit").any():
        handles.append(Line2D([], [], color=FAINT, marker="x", linestyle="none", label="no fit"))
    return handles
