"""Directional curvature against singular value of the gradient, layer by layer."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.errors import DataError
from spectral_laws.plotting.style import (
    COLUMN_WIDTH,
    FAINT,
    KIND_COLORS,
    SMALL,
    THEORY,
    label_decades,
    styled,
)
from spectral_laws.plotting.tables import require, shorten

_LAYER = ("model", "seed", "layer_index", "layer", "kind")
_SPECTRA = (
    *_LAYER,
    "index",
    "singular_value",
    "directional_curvature",
    "n_samples",
    "n_below_rank",
)
_EXPONENTS = (*_LAYER, "status", "alpha", "alpha_low", "alpha_high", "alpha_r2")  # fmt: skip
_GUIDE = (0, (1, 1.5))


@styled
def draw_curvature_power_law(
    spectra: pd.DataFrame, exponents: pd.DataFrame, *, model: str | None = None
) -> Figure:
    """h_k against sigma_k, log-log, on four layers of one training.

    h_k is the second derivative of the loss along u_k v_k^T, not an eigenvalue. The line is the
    ordinary least squares fit log h = alpha log sigma + const of the exponents table, the dotted
    guide has slope 2. Layers: the first, the middle and the last before the head, and the head;
    of the convolutions where there are at least three, otherwise of all such layers.

    Args:
        spectra: table of ``measure_curvature``.
        exponents: table of ``fit_exponents``.
        model: name of the model; None takes the first of the table. The lowest seed is drawn.

    Raises:
        DataError: if a column is missing, the model is unknown, or nothing can be drawn.
    """
    require(spectra, _SPECTRA, name="spectra")
    require(exponents, _EXPONENTS, name="exponents")
    name = spectra["model"].iloc[0] if model is None else model
    rows = spectra[spectra["model"] == name]
    if rows.empty:
        known = ", ".join(dict.fromkeys(spectra["model"]))
        raise DataError(f"spectra table: no model {name!r}, there are {known}")
    rows = rows[rows["seed"] == rows["seed"].min()]
    seed = rows["seed"].iloc[0]
    fits = exponents[(exponents["model"] == name) & (exponents["seed"] == seed)]
    layers = pick_layers(rows)
    columns = min(len(layers), 2)
    lines = math.ceil(len(layers) / columns)
    figure = Figure(figsize=(COLUMN_WIDTH, 1.6 * lines + 0.55), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for spare in axes.flat[len(layers) :]:
        spare.remove()
    for axis, layer in zip(axes.flat, layers, strict=False):
        _draw_layer(axis, rows[rows["layer"] == layer], fits[fits["layer"] == layer])
    figure.supxlabel(r"singular value $\sigma_k$ of the gradient (loss / weight)", fontsize=7)
    figure.supylabel(r"curvature $h_k$ along $u_k v_k^{\top}$ (loss / weight$^2$)", fontsize=7)
    samples = rows["n_samples"].iloc[0]
    figure.legend(
        handles=[
            Line2D([], [], color=THEORY, linewidth=0.9, label=r"fit, slope $\alpha$"),
            Line2D([], [], color=FAINT, linestyle=_GUIDE, label="guide, slope 2"),
        ],
        title=f"{shorten(str(name))}, seed {seed}, batch of {samples:,} samples",
        loc="outside upper center",
        ncols=2,
    )
    return figure


def pick_layers(rows: pd.DataFrame) -> list[str]:
    """First, middle, last layer before the head, and the head, without repeats."""
    layers = rows.drop_duplicates("layer").sort_values("layer_index")
    heads = layers.loc[layers["kind"] == "head", "layer"].tolist()
    body = layers.loc[layers["kind"] != "head", "layer"].tolist()
    convolutions = layers.loc[layers["kind"] == "conv", "layer"].tolist()
    body = convolutions if len(convolutions) >= 3 else body
    picks = [body[0], body[len(body) // 2], body[-1]] if body else []
    return list(dict.fromkeys(picks + heads[-1:]))


def _draw_layer(axis: Axes, rows: pd.DataFrame, fits: pd.DataFrame) -> None:
    sigma = rows["singular_value"].to_numpy(dtype=np.float64)
    curvature = rows["directional_curvature"].to_numpy(dtype=np.float64)
    positive = (sigma > 0) & (curvature > 0)
    color = KIND_COLORS[rows["kind"].iloc[0]]
    x, y = sigma[positive], curvature[positive]
    axis.plot(x, y, "o", color=color, markeredgecolor="white", markeredgewidth=0.3)
    layer = shorten(str(rows["layer"].iloc[0]), limit=24)
    fit = fits.iloc[0] if len(fits) else None
    if fit is not None and fit["status"] == "fit":
        ends = np.array([x.min(), x.max()])
        # Least squares lines pass through the mean of the logs: the slope gives the line.
        centre, level = np.exp(np.log(x).mean()), np.exp(np.log(y).mean())
        axis.plot(ends, level * (ends / centre) ** fit["alpha"], color=THEORY, linewidth=0.9)
        axis.plot(ends, level * (ends / centre) ** 2, color=FAINT, linestyle=_GUIDE)
        title = (
            rf"$\alpha$ = {fit['alpha']:.2f} "
            rf"[{fit['alpha_low']:.2f}, {fit['alpha_high']:.2f}]"
        )
    else:
        title = "no fit (it needs 5 entries)"
    axis.set_title(f"{layer}\n{title}", loc="left", fontsize=6.5)
    if positive.any():
        axis.set(xscale="log", yscale="log")
        axis.margins(0.08)
        label_decades(axis)
    else:  # nothing has a place on logarithmic axes
        axis.set(xticks=[], yticks=[])
    _write(axis, _counts(positive, rows, fit), x, y)


def _write(axis: Axes, text: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Write into the corner that holds the fewest points."""
    to_axes = axis.transData + axis.transAxes.inverted()
    right, up = to_axes.transform(np.column_stack([x, y])).T
    corners = {
        ("right", "bottom"): (right > 0.4) & (up < 0.36),
        ("left", "top"): (right < 0.6) & (up > 0.64),
        ("left", "bottom"): (right < 0.6) & (up < 0.36),
        ("right", "top"): (right > 0.4) & (up > 0.64),
    }
    side, end = min(corners, key=lambda corner: int(corners[corner].sum()))
    place = (0.98 if side == "right" else 0.03, 0.97 if end == "top" else 0.04)
    axis.text(*place, text, transform=axis.transAxes, ha=side, va=end, fontsize=SMALL)


def _counts(positive: NDArray[np.bool_], rows: pd.DataFrame, fit: pd.Series | None) -> str:
    dropped, below = int((~positive).sum()), int(rows["n_below_rank"].iloc[0])
    lines = [f"{positive.sum()} of {positive.size} used"]
    if dropped:
        lines.append(rf"{dropped} dropped ($h\leq 0$)")
    if below:
        lines.append(f"{below} below rank")
    if fit is not None and fit["status"] == "fit":
        lines.append(rf"$R^2$ = {fit['alpha_r2']:.2f}")
    return "\n".join(lines)
