"""The claims of both papers and what became of them, on one page."""

import math
import re
import textwrap
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.palette import PAPERS, VERDICT_COLORS, VERDICT_MARKERS
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, styled
from spectral_laws.plotting.tables import require

_COLUMNS = ("id", "paper", "statement", "paper_value", "our_value", "ci_low", "ci_high", "n",
            "accept", "verdict")  # fmt: skip
_LINE = 0.098  # inches per line of text
_GAP = 0.05  # inches between rows


@dataclass(frozen=True)
class _Column:
    title: str
    left: float  # inches
    characters: int


_ID = _Column("", 0.22, 4)
_STATEMENT = _Column("claim", 0.55, 60)
_PAPER = _Column("paper", 3.3, 29)
_OURS = _Column("here, with interval", 4.65, 25)
_ACCEPT = _Column("accepted", 5.84, 14)
_N = _Column("n", 6.56, 9)
_GREEK = {"alpha": "\u03b1", "gamma": "\u03b3", "lambda": "\u03bb", "sigma": "\u03c3",
          "theta": "\u03b8", "zeta": "\u03b6", "sqrt": "\u221a"}  # fmt: skip
_SIGNS = {"<=": "\u2264", ">=": "\u2265", "^2 ": "\u00b2 ", "^2)": "\u00b2)", "^2.": "\u00b2."}


@styled
def draw(claims: pd.DataFrame) -> Figure:
    """One row per claim: verdict (colour and symbol), the paper's value, ours, accepted range, n.

    Args:
        claims: table of ``evaluate_claims``. A missing value or interval is left blank; the
            reason stands in the table itself. Ours has its interval in brackets.

    Raises:
        DataError: if a column is missing, there are no rows, or a verdict or paper is unknown.
    """
    require(claims, _COLUMNS, name="claims")
    for name, known in (("verdict", set(VERDICT_MARKERS)), ("paper", set(PAPERS))):
        unknown = sorted(set(claims[name].astype(str)) - known)
        if unknown:
            raise DataError(f"claims table: unknown {name} {', '.join(unknown)}")
    cells = {index: _cells(row) for index, row in claims.iterrows()}
    papers = [paper for paper in PAPERS if (claims["paper"] == paper).any()]
    heights = {index: _LINE * _lines(row) + _GAP for index, row in cells.items()}
    height = sum(heights.values()) + 0.27 * len(papers) + 0.47

    figure = Figure(figsize=(TEXT_WIDTH, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, TEXT_WIDTH), ylim=(height, 0))  # in inches from the upper left corner
    axis.axis("off")
    top = 0.43
    for column in (_STATEMENT, _PAPER, _OURS, _ACCEPT, _N):
        axis.text(column.left, top - 0.06, column.title, va="bottom", color="0.35")
    for paper in papers:
        axis.text(0.1, top + 0.15, PAPERS[paper], fontweight="bold", va="center")
        top += 0.27
        for index, row in claims[claims["paper"] == paper].iterrows():
            _draw_row(axis, top, heights[index], str(row["verdict"]), cells[index])
            top += heights[index]
    figure.legend(handles=_handles(claims), loc="upper center", ncols=4)
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


def _cells(row: pd.Series) -> dict[_Column, str]:
    count = "" if pd.isna(row["n"]) else f"{int(row['n']):,}"
    texts = {
        _ID: str(row["id"]),
        _STATEMENT: str(row["statement"]),
        _PAPER: "" if pd.isna(row["paper_value"]) else str(row["paper_value"]),
        _OURS: value_text(row),
        _ACCEPT: region_text(str(row["accept"])),
        _N: count,
    }
    return {column: _wrap(text, column.characters) for column, text in texts.items()}


def value_text(row: pd.Series) -> str:
    """Our value with its interval, at most three significant digits; empty where there is none."""
    if pd.isna(row["our_value"]):
        return ""
    value, low, high = (float(row[name]) for name in ("our_value", "ci_low", "ci_high"))
    if math.isnan(low) or math.isnan(high):
        text = f"{value:.3g}"
    else:  # nothing below a hundredth of the interval, nor a minus before zero
        digits = 2 - math.floor(math.log10(high - low)) if high > low else 15
        text = f"{round(value, digits) + 0.0:.3g} [{low:.3g}, {high:.3g}]"
    return text.replace("-", "\N{MINUS SIGN}")


def region_text(region: str) -> str:
    """A range as the claims table writes it, '[-inf, 0.2]', in words: at most 0.2."""
    low, high = region.strip("[]").replace("-", "\N{MINUS SIGN}").split(", ")
    if low.endswith("inf"):
        return f"\N{LESS-THAN OR EQUAL TO} {high}"
    return f"\N{GREATER-THAN OR EQUAL TO} {low}" if high == "inf" else f"{low} to {high}"


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


def _handles(claims: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D(
            [], [], marker=symbol, linestyle="none", color=VERDICT_COLORS[verdict], markersize=5,
            markeredgewidth=1, label=f"{verdict}: {(claims['verdict'] == verdict).sum()}",
        )
        for verdict, symbol in VERDICT_MARKERS.items()
    ]  # fmt: skip
