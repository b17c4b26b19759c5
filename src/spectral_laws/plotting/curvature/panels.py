"""What the curvature figures share: which rows, roles and their colours, strips."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from spectral_laws.errors import DataError
from spectral_laws.fitting.loglog import MINIMUM_POINTS
from spectral_laws.palette import FAINT, GROUP_COLORS, ROLE_GROUPS, ROLE_NAMES
from spectral_laws.plotting.marks import bar_lengths, ends_of
from spectral_laws.plotting.style import SMALL, label_decades
from spectral_laws.plotting.tables import plural, summarise_seeds
from spectral_laws.settings.roles import LAYER as KEY
from spectral_laws.settings.roles import MAIN

_NARROW = 0.75  # decades below which powers of ten leave an axis without labels
DASHED = (0, (4, 2))
"""Dash of reference levels."""
LAYER = (*KEY, "layer", "kind", "role")
"""Columns that name a layer of one training and say what it is."""
NO_FIT = f"no fit (n < {MINIMUM_POINTS} entries)"
PAPER_ERROR = 1.6
"""Median of |s - alpha gamma| / |s| in the paper, percent."""


def check_roles(table: pd.DataFrame, *, name: str) -> pd.DataFrame:
    """The table with a column ``group`` (family of roles); DataError if a role is unknown."""
    unknown = sorted(set(table["role"].astype(str)) - set(ROLE_GROUPS))
    if unknown:
        raise DataError(f"{name} table: unknown role {', '.join(unknown)}")
    return table.assign(group=table["role"].map(ROLE_GROUPS))


def main_models(experiments: pd.DataFrame) -> list[str]:
    """Names of the models of the experiment ``architectures``, in the table's order, if any."""
    names = experiments.loc[experiments["experiment"] == MAIN, "model"]
    if names.empty:
        raise DataError(f"experiments table: no rows of the experiment {MAIN!r}")
    return [str(name) for name in dict.fromkeys(names)]


def main_rows(table: pd.DataFrame, experiments: pd.DataFrame, *, name: str) -> pd.DataFrame:
    """Rows of the models of the experiment ``architectures``; final ones where epochs are told.

    Rows keep the table's order within a model; models stand in the experiment's order. The column
    ``group`` is :func:`check_roles`'.

    Raises:
        DataError: if there are none, or a role is unknown.
    """
    table, models = check_roles(table, name=name), main_models(experiments)
    rows = table[table["model"].isin(models)]
    if "final" in rows:
        rows = rows[rows["final"].astype(bool)]
    if rows.empty:
        raise DataError(
            f"{name} table: no rows of a final network of the experiment {MAIN!r} "
            f"({', '.join(models)})"
        )
    order = rows["model"].map({model: i for i, model in enumerate(models)})
    ordered: pd.DataFrame = rows.loc[order.sort_values(kind="stable").index]
    return ordered


def fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with a fit."""
    kept: pd.DataFrame = rows[rows["status"] == "fit"]
    return kept


def some_fits(rows: pd.DataFrame, *, name: str) -> pd.DataFrame:
    """Rows with a fit; DataError if there are none."""
    fits = fitted(rows)
    if fits.empty:
        raise DataError(f"{name} table: no row has a fit, nothing to draw")
    return fits


def layer_count(rows: pd.DataFrame) -> int:
    """Number of different layers, whatever the seed."""
    return len(rows[["model", "layer_index"]].drop_duplicates())


def describe_layers(rows: pd.DataFrame) -> str:
    """'86 layers of 5 networks, 5 seeds'; seeds as a range where networks differ."""
    counts = sorted(rows.groupby("model")["seed"].nunique())
    seeds = (
        plural(counts[0], "seed") if len(set(counts)) == 1 else f"{counts[0]}-{counts[-1]} seeds"
    )
    networks = plural(len(counts), "network")
    return f"{plural(layer_count(rows), 'layer')} of {networks}, {seeds}"


def seed_medians(
    rows: pd.DataFrame,
    by: Sequence[str],
    value: str,
    **options: Any,  # noqa: ANN401
) -> pd.DataFrame:
    """Median over layers of each seed, then :func:`.summarise_seeds` with its options.

    ``rows`` has one row per layer and seed, without missing values.
    """
    medians = rows.groupby([*by, "seed"], sort=True)[value].median().reset_index()
    return summarise_seeds(medians, by, value, **options)


def draw_strip(
    axis: Axes,
    place: float,
    rows: pd.DataFrame,
    value: str,
    *,
    color: str,
    width: float = 0.5,
    logarithmic: bool = False,
    **options: Any,  # noqa: ANN401
) -> tuple[float, float, float] | None:
    """Layers as faint points around ``place``; their median with its interval over seeds.

    Points are set beside each other in the order of their values, so that the same table gives
    the same picture. Rows without a value are left out; those that are not positive, if
    ``logarithmic``. ``options`` are those of :func:`.summarise_seeds`.

    Returns:
        Median and its interval; None where no row has a value.
    """
    kept = rows[rows[value].notna()]
    if logarithmic:
        kept = kept[kept[value] > 0]
    if kept.empty:
        return None
    y = np.sort(kept[value].to_numpy(dtype=np.float64))
    golden = (np.arange(y.size) * 0.6180339887498949 + 0.5) % 1.0
    axis.plot(
        place + width * (golden - 0.5), y, "o", color=color, markersize=1.8, alpha=0.6,
        markeredgewidth=0, zorder=2,
    )  # fmt: skip
    one = seed_medians(kept.assign(_all=0), ["_all"], value, logarithmic=logarithmic, **options)
    draw_medians(axis, place, one, color=color)
    return ends_of(one)


def draw_medians(
    axis: Axes,
    x: ArrayLike,
    summary: pd.DataFrame,
    *,
    color: str,
    **line: Any,  # noqa: ANN401
) -> None:
    """Columns centre, low and high of ``summary`` with their intervals, in front of everything."""
    style: dict[str, Any] = {
        "marker": "o", "markersize": 3.8, "markeredgecolor": "black", "ecolor": "black",
        "elinewidth": 0.8, "capsize": 1.6, "zorder": 4, "linestyle": "none",
    }  # fmt: skip
    centre, bars = summary["centre"].to_numpy(np.float64), bar_lengths(summary)
    axis.errorbar(np.atleast_1d(x), centre, yerr=bars, color=color, **(style | line))


def label_strips(axis: Axes, labels: Sequence[str], **text: Any) -> None:  # noqa: ANN401
    """Name the strips of a panel, which stand at 0, 1, ..., below it."""
    axis.set_xticks(range(len(labels)), labels, **text)
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.6, len(labels) - 0.4)


def label_roles(axis: Axes, roles: Sequence[str]) -> None:
    """Name the roles below a panel whose strips stand at 0, 1, ..."""
    label_strips(axis, [ROLE_NAMES[role] for role in roles], fontsize=SMALL)


def draw_groups(
    axis: Axes,
    rows: pd.DataFrame,
    x: pd.Series,
    y: pd.Series,
    **line: Any,  # noqa: ANN401
) -> None:
    """Points in the colours of their families of roles."""
    for group in sorted(rows["group"].unique()):
        mine = rows["group"] == group
        axis.plot(x[mine], y[mine], "o", color=GROUP_COLORS[group], **line)


def roles_of(rows: pd.DataFrame) -> list[str]:
    """Roles that occur, in the order they are drawn."""
    return [role for role in ROLE_NAMES if (rows["role"] == role).any()]


def groups_of(rows: pd.DataFrame) -> list[str]:
    """Families of roles that occur, in the order they are drawn."""
    return [group for group in GROUP_COLORS if (rows["group"] == group).any()]


def group_handles(rows: pd.DataFrame) -> list[Line2D]:
    """Legend entries of the families of roles that occur."""
    return [
        Line2D([], [], color=GROUP_COLORS[group], marker="o", linestyle="none", label=group)
        for group in groups_of(rows)
    ]


def median_handle(label: str = "median over layers, interval over seeds") -> Line2D:
    """Legend entry of :func:`draw_median`."""
    return Line2D([], [], color="white", marker="o", markeredgecolor="black", markersize=3.8,
                  linestyle="none", label=label)  # fmt: skip


def reference(axis: Axes, *levels: float, horizontal: bool = True) -> None:
    """Dashed reference levels behind everything."""
    for level in levels:
        draw = axis.axhline if horizontal else axis.axvline
        draw(level, color=FAINT, linestyle=DASHED, linewidth=0.7, zorder=0)


def label_logarithmic(axis: Axes) -> None:
    """Label logarithmic axes at decades, or by three numbers where they span less than one."""
    label_decades(axis)
    for one, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        if one.get_scale() == "log" and math.log10(max(limits) / min(limits)) < _NARROW:
            one.set_major_locator(MaxNLocator(3))
            one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}"))
            one.set_minor_locator(NullLocator())
