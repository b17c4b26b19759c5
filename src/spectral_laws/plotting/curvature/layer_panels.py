"""Figures with a line per layer: one panel per network, in one column or two."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.plotting.style import COLUMN_WIDTH, SMALL, TEXT_WIDTH
from spectral_laws.plotting.tables import shorten


def layer_panels(
    layers: Mapping[str, Sequence[str]], *, row: float, header: float
) -> tuple[Figure, dict[str, Axes]]:
    """One panel per model with a line per layer: in one column, or in two of equal length.

    Args:
        layers: names of the layers of each model, from input to output.
        row: height of a layer, inches.
        header: height for legend and labels, inches.

    Returns:
        The figure; axes by model, with layers named on the left, the first on top.
    """
    extra = 2.6  # rows that a panel's title and axis take
    sizes = {model: len(names) + extra for model, names in layers.items()}
    columns = [list(sizes)]
    if sum(sizes.values()) > 34 and len(sizes) > 1:
        columns = [[], []]
        for model in sorted(sizes, key=lambda name: -sizes[name]):
            shortest = min(columns, key=lambda column: sum(sizes[name] for name in column))
            shortest.append(model)
        columns = [[name for name in sizes if name in column] for column in columns]
        columns.sort(key=lambda column: list(sizes).index(column[0]))
    longest = max(sum(sizes[name] for name in column) for column in columns)
    width = COLUMN_WIDTH if len(columns) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, row * longest + header), layout="constrained")
    grid = figure.add_gridspec(1, len(columns))
    axes: dict[str, Axes] = {}
    for place, column in enumerate(columns):
        # A spare row makes both columns equally long, so that a layer is as high in each.
        spare = longest - sum(sizes[name] for name in column)
        ratios = [len(layers[name]) + 1.0 for name in column] + ([spare] if spare else [])
        parts = grid[place].subgridspec(len(ratios), 1, height_ratios=ratios)
        for i, model in enumerate(column):
            axes[model] = figure.add_subplot(parts[i])
            _name_layers(axes[model], layers[model])
    return figure, {model: axes[model] for model in layers}


def layers_by_model(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Names of the layers of each model, from input to output."""
    return {
        str(model): part.drop_duplicates("layer").sort_values("layer_index")["layer"].tolist()
        for model, part in rows.groupby("model", sort=False)
    }


def _name_layers(axis: Axes, layers: Sequence[str]) -> None:
    for i in range(0, len(layers), 2):
        axis.axhspan(i - 0.5, i + 0.5, color="0.955", linewidth=0, zorder=-1)
    # GPT-2's names share a first part that tells nothing.
    names = [shorten(str(layer).removeprefix("transformer."), limit=22) for layer in layers]
    axis.set_yticks(range(len(layers)), names, fontsize=SMALL)
    axis.set_ylim(len(layers) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
