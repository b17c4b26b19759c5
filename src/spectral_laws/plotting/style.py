"""What all figures share: sizes, fonts, colours, panels, and how a figure is saved.

Every panel is one column wide, so its text is read at the size it was set in. Figures are made
as ``matplotlib.figure.Figure`` objects, without pyplot's global state, and from matplotlib's own
defaults rather than the user's, so that the same table gives the same bytes everywhere.
"""

import io
import math
import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from spectral_laws.atomic import atomic_path
from spectral_laws.figure_records import put_record
from spectral_laws.palette import MARKERS
from spectral_laws.provenance import Provenance

COLUMN_WIDTH = 3.4
"""Width of a figure in one column, inches."""
TEXT_WIDTH = 7.0
"""Width of a figure across the text, inches."""
SMALL = 6.0
"""Size of the smallest text, points."""

_RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "mathtext.fontset": "dejavusans",
    "font.size": 7.0,
    "axes.labelsize": 7.0,
    "axes.titlesize": 7.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "axes.labelpad": 2.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": SMALL + 0.5,
    "ytick.labelsize": SMALL + 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "legend.fontsize": SMALL + 0.5,
    "legend.title_fontsize": SMALL + 0.5,
    "legend.frameon": False,
    "legend.handlelength": 2.0,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.2,
    "lines.markeredgewidth": 0.6,
    "errorbar.capsize": 1.5,
    "pdf.fonttype": 42,  # TrueType, embedded: text stays text
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "savefig.dpi": 300,
}

P = ParamSpec("P")
Key = TypeVar("Key", bound=Hashable)


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults plus this project's, whatever the user's matplotlibrc says."""
    with mpl.style.context(["seaborn-v0_8-ticks", _RC], after_reset=True):
        yield


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorator: run a drawing function under :func:`house_style`."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with house_style():
            return draw(*args, **kwargs)

    return wrapper


def save_figure(figure: Figure, pdf: Path, png: Path, /, **parameters: Any) -> None:  # noqa: ANN401
    """Write a figure as PDF (fonts embedded) and as PNG (300 dpi), each atomically.

    Both hold what made them (:mod:`spectral_laws.figure_records`): the parameters, the digests of
    the tables that this process has read, versions and commit. They hold no date and no seconds:
    the same tables and code give the same bytes.

    Args:
        figure: what a ``draw_`` function returned; its size in inches is the printed size.
        pdf: final name of the vector file; parent folders are made.
        png: final name of the bitmap.
        parameters: what the figure depends on besides the tables.
    """
    facts = Provenance(parameters).facts()
    facts["versions"]["matplotlib"] = version("matplotlib")
    no_dates = {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None}
    for path, format_, metadata in ((pdf, "pdf", no_dates), (png, "png", {"Software": None})):
        drawn = io.BytesIO()
        with house_style():
            figure.savefig(drawn, format=format_, metadata=metadata)
            figure.set_layout_engine("none")  # the second file has the layout of the first
        with atomic_path(path) as temporary:
            temporary.write_bytes(put_record(drawn.getvalue(), facts))


def label_decades(axes: Axes) -> None:
    """Label logarithmic axes at powers of ten, or also between them where few are in view."""
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() != "log":
            continue
        span = math.log10(high / low)
        decades = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
        wide = span >= 1 and decades >= 2
        between = (1.0,) if wide else (1.0, 3.0) if span >= 0.8 else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=between))
        every = (math.inf, math.inf)  # else numbers between the decades are left out
        axis.set_major_formatter(
            LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=every)
        )
        axis.set_minor_formatter(NullFormatter())


def widened(points: ArrayLike, ends: ArrayLike, *, reach: float = 0.6) -> tuple[float, float]:
    """Axis limits that hold all points, and their intervals as far as those do not dwarf them.

    An interval is followed for at most ``reach`` times the range of the points beyond that range.
    """
    points, ends = np.asarray(points, dtype=np.float64), np.asarray(ends, dtype=np.float64)
    low, high = float(points.min()), float(points.max())
    span = (high - low) or 1.0
    pad = 0.03 * span
    return (
        max(min(float(ends.min()), low), low - reach * span) - pad,
        min(max(float(ends.max()), high), high + reach * span) + pad,
    )


def view_points(axes: Axes, *levels: float) -> None:
    """Vertical limits by :func:`widened`: all markers and levels, and bars as far as it says."""
    points = [levels, *(line.get_ydata() for line in axes.lines if line.get_marker() in MARKERS)]
    bars = [bar for bar in axes.collections if isinstance(bar, LineCollection)]
    ends = [end for bar in bars for part in bar.get_segments() for end in part[:, 1]]
    values = np.concatenate([np.asarray(one, dtype=np.float64) for one in points])
    if axes.get_yscale() == "log":
        ends = [end for end in ends if end > 0]
        axes.set_ylim(*np.exp(widened(np.log(values), np.log([*values, *ends]))))
    else:
        axes.set_ylim(widened(values, [*values, *ends]))


def ordered_colors(keys: Iterable[Key], *, palette: str = "viridis") -> dict[Key, str]:
    """One colour per key, dark to light in the order given, readable on white.

    The light third of the palette is left out.
    """
    names = list(dict.fromkeys(keys))
    cmap = mpl.colormaps[palette]
    step = 0.82 / max(len(names) - 1, 1)
    return {name: mpl.colors.to_hex(cmap(step * i)) for i, name in enumerate(names)}


def markers(keys: Iterable[Key]) -> dict[Key, str]:
    """One marker per key, in the order given; they repeat after eight."""
    names = list(dict.fromkeys(keys))
    return {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(names)}


def empty_panel(axis: Axes, text: str, *, title: str = "") -> None:
    """A panel that says why there is nothing in it."""
    if title:
        axis.set_title(title)
    axis.set(xscale="linear", yscale="linear")
    axis.set(xticks=[], yticks=[], xlabel="", ylabel="")
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.text(
        0.5, 0.5, textwrap.fill(text, 36), transform=axis.transAxes, ha="center", va="center",
        color="0.35", fontsize=7,
    )  # fmt: skip


def minus(text: str) -> str:
    """Numbers with a real minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")
