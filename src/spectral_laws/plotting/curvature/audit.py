"""The paper's text, the author's files and this project's values, side by side."""

import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.palette import FAINT, MEASURED, OUTLIER
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, minus, styled
from spectral_laws.plotting.tables import plural

_VALUES = ("author_value", "author_recomputed", "our_value")
_MARKS = {
    "author_value": ("s", OUTLIER, "stored by the author"),
    "author_recomputed": ("D", OUTLIER, "recomputed from the author's arrays"),
    "our_value": ("o", MEASURED, "here, with interval"),
}
_LINE = 0.098  # inches per line of text
_GAP = 0.07  # inches between rows
_HEAD = 0.48  # inches above the rows
_STRIP = (5.55, 6.75)  # inches: where the points are
_RATIO = 20.0  # values of one sign that differ by more are drawn on a logarithmic scale


@dataclass(frozen=True)
class _Column:
    title: str
    left: float  # inches
    characters: int


_CLAIM = _Column("", 0.08, 5)
_QUANTITY = _Column("quantity", 0.42, 34)
_PAPER = _Column("paper's text", 2.2, 23)
_FILES = _Column("author's files", 3.45, 20)
_OURS = _Column("here", 4.5, 20)


@styled
def draw(audit: pd.DataFrame) -> Figure:
    """One line per quantity: what the paper says, what its files hold, what is measured here.

    Rows of single layers are counted, not drawn. The points of a line have a scale of their own: it
    holds all its values and at least a fifth of the largest, and is logarithmic where they differ
    by more than a factor of 20.
    """
    lines = claim_rows(audit)
    if lines.empty:
        raise DataError("audit table: no row without a layer, nothing to draw")
    cells = [_cells(row) for _, row in lines.iterrows()]
    heights = [_LINE * max(text.count("\n") + 1 for text in row.values()) + _GAP for row in cells]
    height = sum(heights) + _HEAD + 0.25
    figure = Figure(figsize=(TEXT_WIDTH, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, TEXT_WIDTH), ylim=(height, 0))  # in inches from the upper left corner
    axis.axis("off")
    for column in (_QUANTITY, _PAPER, _FILES, _OURS):
        axis.text(column.left, _HEAD - 0.06, column.title, va="bottom", color="0.35")
    axis.text(_STRIP[0], _HEAD - 0.06, "a scale per line", va="bottom", color="0.35")
    top = _HEAD
    for (_, row), texts, tall in zip(lines.iterrows(), cells, heights, strict=True):
        axis.axhline(top, color="0.85", linewidth=0.4)
        for column, text in texts.items():
            axis.text(column.left, top + tall / 2, text, va="center", fontsize=SMALL,
                      linespacing=1.1)  # fmt: skip
        _draw_points(axis, row, top + tall / 2)
        top += tall
    single = len(audit) - len(lines)
    note = f"{plural(single, 'row')} of single layers: see the table" if single else ""
    axis.text(_QUANTITY.left, top + 0.04, note, va="top", color="0.35", fontsize=SMALL)
    handles = [
        Line2D([], [], marker=marker, color=color, linestyle="none", label=label,
               markerfacecolor="none" if name == "author_value" else color)
        for name, (marker, color, label) in _MARKS.items()
    ]  # fmt: skip
    figure.legend(handles=handles, loc="upper center", ncols=3)
    return figure


def claim_rows(audit: pd.DataFrame) -> pd.DataFrame:
    """Rows that summarise layers, in the order of their claims; those without a claim last."""
    rows = audit[audit["layer"].fillna("") == ""]
    rows = rows.assign(claim=rows["claim"].fillna(""))
    numbers = rows["claim"].map(lambda claim: int(str(claim)[1:]) if claim else 1000)
    ordered: pd.DataFrame = rows.loc[numbers.sort_values(kind="stable").index]
    return ordered


def _draw_points(axis: Axes, row: pd.Series, y: float) -> None:
    names = [*_VALUES, "our_low", "our_high"]
    values = {name: float(row[name]) for name in names if pd.notna(row[name])}
    if not values:
        return
    low, high = min(values.values()), max(values.values())
    logarithmic = low > 0 and high / low > _RATIO
    scale = np.log if logarithmic else lambda value: value
    # Numbers that agree to rounding must not stand at the ends of the line.
    least = np.log(1.2) if logarithmic else 0.2 * max(abs(low), abs(high))
    span = max(scale(high) - scale(low), least) or 1.0
    start = (scale(high) + scale(low) - span) / 2
    left, right = _STRIP
    place = {
        name: left + (right - left) * (scale(value) - start) / span
        for name, value in values.items()
    }
    axis.plot([left, right], [y, y], color=FAINT, linewidth=0.4, zorder=1)
    if "our_low" in place and "our_high" in place:
        axis.plot([place["our_low"], place["our_high"]], [y, y], color=MEASURED, linewidth=1.2)
    for name, (marker, color, _) in _MARKS.items():
        if name in place:
            axis.plot(place[name], y, marker, color=color, markersize=3.6, zorder=3,
                      markerfacecolor="none" if name == "author_value" else color)  # fmt: skip
    if logarithmic:
        axis.text(right + 0.07, y, "log", fontsize=SMALL, va="center", ha="left", rotation=90,
                  color="0.35")  # fmt: skip


def _cells(row: pd.Series) -> dict[_Column, str]:
    stored, again = _number(row["author_value"]), _number(row["author_recomputed"])
    name = str(row["source"]).removeprefix("results_").removesuffix(".json")
    files = [name.replace("_", " ")]
    files += [f"stored {stored}"] if stored else []
    files += [f"recomputed {again}"] if again else []
    ours = _number(row["our_value"])
    if ours and pd.notna(row["our_low"]) and pd.notna(row["our_high"]):
        ours += f" [{_number(row['our_low'])}, {_number(row['our_high'])}]"
    return {
        _CLAIM: str(row["claim"]),
        _QUANTITY: _wrap(str(row["quantity"]), _QUANTITY.characters),
        _PAPER: _wrap(
            "" if pd.isna(row["paper_text"]) else str(row["paper_text"]), _PAPER.characters
        ),
        _FILES: "\n".join(files),
        _OURS: _wrap(ours, _OURS.characters),
    }


def _number(value: float | None) -> str:
    return "" if pd.isna(value) else minus(f"{value:.3g}")


def _wrap(text: str, characters: int) -> str:
    # A lone dollar sign would start a formula.
    return textwrap.fill(text, characters).replace("$", r"\$")
