"""The claims of both papers and what became of them, on one page."""

import math
import re
import textwrap
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.claims.registry import Region
from spectral_laws.claims.views import GROUPS, View, view_claims
from spectral_laws.palette import VERDICT_COLORS, VERDICT_MARKERS
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, styled

_LINE = 0.098  # inches per line of text
_GAP = 0.04  # inches between rows


@dataclass(frozen=True)
class _Column:
    title: str
    left: float  # inches
    characters: int


_ID = _Column("", 0.22, 4)
_STATEMENT = _Column("claim", 0.55, 54)
_PAPER = _Column("paper", 3.05, 28)
_OURS = _Column("here, with interval", 4.38, 21)
_ACCEPT = _Column("accepted", 5.42, 14)
_N = _Column("n (coverage)", 6.12, 18)
_GREEK = {"alpha": "\u03b1", "gamma": "\u03b3", "lambda": "\u03bb", "sigma": "\u03c3",
          "theta": "\u03b8", "zeta": "\u03b6", "sqrt": "\u221a"}  # fmt: skip
_SIGNS = {"<=": "\u2264", ">=": "\u2265", "^2 ": "\u00b2 ", "^2)": "\u00b2)", "^2.": "\u00b2."}


@styled
def draw(claim_measurements: pd.DataFrame) -> Figure:
    """One row per claim: verdict (colour and symbol), the paper's value, ours, accepted range, n.

    n counts what is resampled; where it is below ten in any stratum, 95 % intervals of so few cover
    the truth with the probability in brackets. The legend counts the papers' claims. A missing
    value or interval is left blank; the reason stands in the table itself.
    """
    views = view_claims(claim_measurements)
    groups = {group: [view for view in views if view.group == group] for group in GROUPS}
    cells = {view.claim.id: _cells(view) for view in views}
    heights = {name: _LINE * _lines(row) + _GAP for name, row in cells.items()}
    height = sum(heights.values()) + 0.27 * sum(map(bool, groups.values())) + 0.62

    figure = Figure(figsize=(TEXT_WIDTH, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, TEXT_WIDTH), ylim=(height, 0))  # in inches from the upper left corner
    axis.axis("off")
    top = 0.58
    for column in (_STATEMENT, _PAPER, _OURS, _ACCEPT, _N):
        axis.text(column.left, top - 0.06, column.title, va="bottom", color="0.35")
    for group, chosen in groups.items():
        if not chosen:
            continue
        axis.text(0.1, top + 0.15, GROUPS[group], fontweight="bold", va="center")
        top += 0.27
        for view in chosen:
            name = view.claim.id
            _draw_row(axis, top, heights[name], view.primary.verdict, cells[name])
            top += heights[name]
    figure.legend(handles=_handles(views), loc="upper center", ncols=4)
    return figure


def _draw_row(
    axis: Axes, top: float, height: float, verdict: str, cells: dict[_Column, str]
) -> None:
    color = VERDICT_COLORS[verdict]
    middle = top + height / 2
    axis.axhspan(top, top + height, color=color, alpha=0.10, linewidth=0)
    axis.axhline(top, color="white", linewidth=1)
    axis.plot(0.12, middle, VERDICT_MARKERS[verdict], color=color, markersize=5, markeredgewidth=1)
    for column, text in cells.items():
        axis.text(column.left, middle, text, va="center", fontsize=SMALL, linespacing=1.1)


def _cells(view: View) -> dict[_Column, str]:
    row = view.primary
    covers = f"({row.coverage} %)".replace(" ", "\N{NO-BREAK SPACE}") if row.coverage else ""
    texts = {
        _ID: view.claim.id,
        _STATEMENT: view.claim.statement,
        _PAPER: view.claim.paper_value,
        _OURS: row.value.replace("-", "\N{MINUS SIGN}"),
        _ACCEPT: region_text(view.claim.accept),
        _N: f"{row.clusters} {covers}",
    }
    return {column: _wrap(text, column.characters) for column, text in texts.items()}


def region_text(region: Region) -> str:
    """A range in words: '0.8 to 1.2', or at most 0.2."""
    low, high = (f"{end:g}".replace("-", "\N{MINUS SIGN}") for end in (region.low, region.high))
    if math.isinf(region.low):
        return f"\N{LESS-THAN OR EQUAL TO} {high}"
    if math.isinf(region.high):
        return f"\N{GREATER-THAN OR EQUAL TO} {low}"
    return f"{low} to {high}"


def typeset(text: str) -> str:
    """Greek letters, signs and squares for the names of the registry, which is plain ASCII."""
    for name, letter in _GREEK.items():
        text = re.sub(rf"(?<![a-z]){name}(?![a-z])", letter, text)
    for written, sign in _SIGNS.items():
        text = text.replace(written, sign)
    return re.sub(r"(?<!\w)-(?=[\d. ])", "\N{MINUS SIGN}", text)


def _wrap(text: str, characters: int) -> str:
    # A lone dollar sign would start a formula.
    return textwrap.fill(typeset(text), characters).replace("$", r"\$")


def _lines(cells: dict[_Column, str]) -> int:
    return max(text.count("\n") + 1 for text in cells.values())


def _handles(views: list[View]) -> list[Line2D]:
    found = [view.primary.verdict for view in views if view.claim.kind == "claim"]
    return [
        Line2D(
            [], [], marker=symbol, linestyle="none", color=VERDICT_COLORS[verdict], markersize=5,
            markeredgewidth=1, label=f"{verdict}: {found.count(verdict)}",
        )
        for verdict, symbol in VERDICT_MARKERS.items()
    ]  # fmt: skip
