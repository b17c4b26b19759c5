"""Directional curvature against singular value of the gradient, layer by layer."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.errors import DataError
from spectral_laws.palette import FAINT, GROUP_COLORS, THEORY
from spectral_laws.plotting.corners import write_corner
from spectral_laws.plotting.curvature.panels import (
    NO_FIT,
    check_roles,
    label_logarithmic,
    main_rows,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, SMALL, TEXT_WIDTH, minus, styled
from spectral_laws.plotting.tables import shorten
from spectral_laws.settings.roles import MLP

_GUIDE = (0, (1, 1.5))


@styled
def draw(
    spectra: pd.DataFrame,
    exponents: pd.DataFrame,
    experiments: pd.DataFrame,
    *,
    top_k: int,
    model: str | None = None,
) -> Figure:
    """h_k against sigma_k, log-log, on four layers of one training of each architecture.

    h_k is the second derivative of the loss along u_k v_k^T, not an eigenvalue. The line is the
    ordinary least squares fit log h = alpha log sigma + const of the exponents table, the dotted
    guide has slope 2. Layers: :func:`pick_layers`. The lowest seed is drawn.
    """
    rows = check_roles(spectra, name="spectra")
    rows = rows[(rows["part"] == "whole") & (rows["index"] <= top_k)]
    if model is None:
        rows = main_rows(rows, experiments, name="spectra")
    elif (rows["model"] == model).any():
        rows = rows[(rows["model"] == model) & rows["final"]]
    else:
        known = ", ".join(dict.fromkeys(spectra["model"]))
        raise DataError(f"spectra table: no model {model!r}, there are {known}")
    rows = rows[rows["seed"] == rows.groupby("model")["seed"].transform("min")]
    picks = {str(name): pick_layers(part) for name, part in rows.groupby("model", sort=False)}
    figure, axes = _panels(picks)
    for (name, layer), axis in axes.items():
        mine = rows[(rows["model"] == name) & (rows["layer"] == layer)]
        first = mine.iloc[0]
        same = (exponents[["model", "seed", "epoch", "layer"]]
                == [name, first["seed"], first["epoch"], layer]).all(axis=1)  # fmt: skip
        _draw_layer(axis, mine, exponents[same], with_model=len(picks) > 1)
    figure.supxlabel(r"singular value $\sigma_k$ of the gradient (loss / weight)", fontsize=7)
    figure.supylabel(
        r"directional curvature $h_k$ along $u_k v_k^{\top}$, not an eigenvalue (loss / weight$^2$)"
        if len(picks) > 2
        else r"curvature $h_k$ along $u_k v_k^{\top}$ (loss / weight$^2$)",
        fontsize=7,
    )
    figure.legend(
        handles=[
            Line2D([], [], color=THEORY, linewidth=0.9, label=r"fit, slope $\alpha$"),
            Line2D([], [], color=FAINT, linestyle=_GUIDE, label="guide, slope 2"),
        ],
        title=_title(rows),
        loc="outside upper center",
        ncols=2,
    )
    return figure


def _panels(picks: dict[str, list[str]]) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Four panels a model: a row of them, or a square where there is one model."""
    columns = 2 if len(picks) == 1 else 4
    cells = [(name, layer) for name, layers in picks.items() for layer in layers]
    places: dict[tuple[str, str], int] = {}
    for row, (name, layers) in enumerate(picks.items()):
        for i, layer in enumerate(layers):
            places[name, layer] = 4 * row + i
    lines = max(places.values()) // columns + 1
    width = COLUMN_WIDTH if columns == 2 else TEXT_WIDTH
    figure = Figure(figsize=(width, 1.55 * lines + 0.6), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    axes = {cell: grid.flat[places[cell]] for cell in cells}
    for axis in set(grid.flat) - set(axes.values()):
        axis.remove()
    return figure, axes


def _title(rows: pd.DataFrame) -> str:
    batches = sorted(rows["n_samples"].unique())
    samples = f"{batches[0]:,}" if len(batches) == 1 else f"{batches[0]:,} to {batches[-1]:,}"
    models = rows["model"].unique()
    name = shorten(str(models[0])) if len(models) == 1 else f"{len(models)} networks"
    return f"{name}, seed {rows['seed'].min()}, batch of {samples} samples"


def pick_layers(rows: pd.DataFrame) -> list[str]:
    """Four layers of one network that stand for it.

    Of a transformer, in its middle block: attention's input projection, MLP up- and
    down-projection. Otherwise the first, the middle and the last layer before the head, of the
    convolutions where there are at least three. And the head.
    """
    layers = rows.drop_duplicates("layer").sort_values("layer_index")
    heads = layers.loc[layers["kind"] == "head", "layer"].tolist()
    body = layers.loc[layers["kind"] != "head", "layer"].tolist()
    by_role = [
        layers.loc[layers["role"] == role, "layer"].tolist() for role in ("attention_qkv", *MLP)
    ]
    if all(by_role):
        return [names[len(names) // 2] for names in by_role] + heads[-1:]
    convolutions = layers.loc[layers["kind"] == "conv", "layer"].tolist()
    body = convolutions if len(convolutions) >= 3 else body
    picks = [body[0], body[len(body) // 2], body[-1]] if body else []
    return list(dict.fromkeys(picks + heads[-1:]))


def _draw_layer(axis: Axes, rows: pd.DataFrame, fits: pd.DataFrame, *, with_model: bool) -> None:
    sigma = rows["singular_value"].to_numpy(dtype=np.float64)
    curvature = rows["directional_curvature"].to_numpy(dtype=np.float64)
    positive = (sigma > 0) & (curvature > 0)
    color = GROUP_COLORS[rows["group"].iloc[0]]
    x, y = sigma[positive], curvature[positive]
    axis.plot(x, y, "o", color=color, markeredgecolor="white", markeredgewidth=0.3)
    # GPT-2's names share a first part that tells nothing.
    layer = shorten(str(rows["layer"].iloc[0]).removeprefix("transformer."), limit=24)
    if with_model:
        layer = f"{shorten(str(rows['model'].iloc[0]), limit=12)}: {layer}"
    fit = fits.iloc[0] if len(fits) else None
    if fit is not None and fit["status"] == "fit" and positive.any():
        ends = np.array([x.min(), x.max()])
        # Least squares lines pass through the mean of the logs: the slope gives the line.
        centre, level = np.exp(np.log(x).mean()), np.exp(np.log(y).mean())
        axis.plot(ends, level * (ends / centre) ** fit["alpha"], color=THEORY, linewidth=0.9)
        axis.plot(ends, level * (ends / centre) ** 2, color=FAINT, linestyle=_GUIDE)
        interval = f"{fit['alpha']:.2f} [{fit['alpha_low']:.2f}, {fit['alpha_high']:.2f}]"
        title = rf"$\alpha$ = {minus(interval)}"
    else:
        title = NO_FIT
    axis.set_title(f"{layer}\n{title}", fontsize=SMALL + 0.5 * (not with_model))
    if positive.any():
        axis.set(xscale="log", yscale="log")
        axis.margins(0.08)
        label_logarithmic(axis)
    else:  # nothing has a place on logarithmic axes
        axis.set(xticks=[], yticks=[])
    write_corner(axis, _counts(positive, rows, fit), white=False)


def _counts(positive: NDArray[np.bool_], rows: pd.DataFrame, fit: pd.Series | None) -> str:
    lines = [f"{positive.sum()} of {positive.size} used"]
    if dropped := int((~positive).sum()):
        lines.append(rf"{dropped} dropped ($h\leq 0$)")
    # Of the top_k drawn: spectra count those of the model's own, which may be more.
    if fit is not None and fit["n_below_rank"]:
        lines.append(f"{fit['n_below_rank']} below rank")
    if fit is not None and fit["status"] == "fit":
        lines.append(rf"$R^2$ = {fit['alpha_r2']:.2f}")
    return "\n".join(lines)
