"""Eigenvectors of the moment matrix: first-order expansion against the Davis-Kahan bound."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.fitting.slopes import common_slope, log_of
from spectral_laws.palette import DEGREE_COLORS, FAINT
from spectral_laws.plotting.recovery.panels import (
    GUIDE,
    draw_guide,
    draw_points,
    finish_logarithmic,
    kind_handle,
    of_largest_dimension,
    seed_range,
)
from spectral_laws.plotting.style import (
    COLUMN_WIDTH,
    empty_panel,
    markers,
    minus,
    ordered_colors,
    styled,
)
from spectral_laws.plotting.tables import groups, summarise_seeds

_TEACHER = ["study", "dimension", "seed"]


@styled
def draw(perturbation: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """C = E C + Delta: how far its eigenvectors turn, degree 1 and 2.

    (a) Error of the first-order expansion against ||Delta||, at the largest d of each degree, one
    colour per direction, where ||Delta|| is below half the gap for every seed; dotted: slope 2.
    (b) The Davis-Kahan bound ||Delta|| / gap over the true sine, per direction k, all sample sizes
    and d of each study. (c) ||Delta|| against n / D, all d; dotted: slope -1/2. Points are
    geometric means over seeds (in (b) over teachers) with Student's interval. The titles have the
    slopes of all d, with an intercept per teacher, in (a) and direction.
    """
    if not perturbation["resolved"].any():
        raise DataError("perturbation table: no row is resolved, nothing to draw in (a)")
    figure = Figure(figsize=(COLUMN_WIDTH, 6.6), layout="constrained")
    axes = figure.subplots(3, 1)
    _draw_expansion(axes[0], perturbation, confidence)
    _draw_bound(axes[1], perturbation, confidence)
    _draw_norm(axes[2], perturbation, confidence)
    handles = [
        kind_handle(f"degree $q$ = {degree}", color=DEGREE_COLORS[degree], marker="o",
                    linestyle="none")
        for degree in sorted(perturbation["degree"].unique())
    ]  # fmt: skip
    handles.append(kind_handle("guide", linestyle=GUIDE))
    figure.legend(
        handles=handles, title=f"(b), (c): {seed_range(perturbation)} of each $d$",
        loc="outside lower center", ncols=3,
    )  # fmt: skip
    return figure


def resolved_everywhere(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sample sizes and directions at which every seed is resolved."""
    by = ["study", "dimension", "sample_size", "direction"]
    return rows[rows.groupby(by)["resolved"].transform("all").astype(bool)]


def _draw_expansion(axis: Axes, table: pd.DataFrame, confidence: float) -> None:
    handles = []
    largest = pd.concat(of_largest_dimension(rows) for _, rows in groups(table, "degree"))
    shown = sorted(set(resolved_everywhere(largest)["direction"]))
    colors, symbols = ordered_colors(shown, palette="plasma"), markers(shown)
    for (degree,), of_degree in groups(table, "degree"):
        of_degree = of_largest_dimension(of_degree)
        rows = resolved_everywhere(of_degree)
        if rows.empty:
            continue
        by = ["study", "direction", "sample_size"]
        errors = summarise_seeds(
            rows, by, "expansion_error", confidence=confidence, logarithmic=True
        )
        norms = summarise_seeds(rows, by, "operator_norm", confidence=confidence, logarithmic=True)
        errors = errors.assign(norm=norms["centre"])
        for (direction,), points in groups(errors, "direction"):
            draw_points(
                axis, points["norm"], points, hollow=bool(degree == 2), color=colors[direction],
                marker=symbols[direction],
            )  # fmt: skip
        strongest = errors[errors["direction"] == 1]
        if len(strongest):
            place = strongest.iloc[len(strongest) // 2]
            ends = (float(strongest["norm"].min()), float(strongest["norm"].max()))
            # Below the points, so that they do not hide it.
            draw_guide(axis, ends, (float(place["norm"]), 0.4 * float(place["centre"])), 2.0)
        face = {} if degree == 1 else {"markerfacecolor": "white"}
        label = rf"$q$ = {degree}, $d$ = {of_degree['dimension'].iloc[0]}, {seed_range(of_degree)}"
        handles.append(kind_handle(label, marker="o", linestyle="none", **face))
    handles += [
        kind_handle(f"$k$ = {k}", color=colors[k], marker=symbols[k], linestyle="none")
        for k in shown
    ]
    axis.set(xscale="log", xlabel=r"$\|\Delta\|$ (units of $y$)")
    axis.set_ylabel("error of the expansion\n(tangent, dimensionless)")
    fitted = _slopes(table[table["resolved"].astype(bool)], "operator_norm", "expansion_error",
                     [*_TEACHER, "direction"])  # fmt: skip
    axis.set_title(f"(a) first-order expansion; dotted: slope 2\nfitted: {fitted}")
    if not shown:
        empty_panel(axis, "No sample size and direction is resolved by every seed.")
        return
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1)
    finish_logarithmic(axis)


def _draw_bound(axis: Axes, table: pd.DataFrame, confidence: float) -> None:
    ratios = table.assign(log_ratio=np.log(table["davis_kahan"] / table["sin_theta"]))
    by = ["study", "degree", "direction", "dimension", "seed"]
    teachers = ratios.groupby(by, as_index=False)["log_ratio"].mean()
    teachers = teachers.assign(ratio=np.exp(teachers["log_ratio"]))
    studies = list(dict.fromkeys(table["study"]))
    symbols = markers(studies)
    for study in studies:
        rows = teachers[teachers["study"] == study]
        points = summarise_seeds(
            rows, ["direction"], "ratio", confidence=confidence, logarithmic=True
        )
        widths = table.loc[table["study"] == study, "n_directions"]
        degree = int(rows["degree"].iloc[0])
        draw_points(
            axis, points["direction"], points, color=DEGREE_COLORS[degree], marker=symbols[study],
            label=rf"$q$ = {degree}, $d_1$ = {widths.max()}", linestyle="-", linewidth=0.5,
        )  # fmt: skip
    axis.axhline(1.0, color=FAINT, linewidth=0.6, zorder=0)
    axis.set(xlabel="direction $k$", ylabel="Davis-Kahan bound /\ntrue sine (ratio)")
    axis.set_xticks(sorted(table["direction"].unique()))
    axis.set_title("(b) the bound against the angle")
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.5)
    finish_logarithmic(axis)


def _draw_norm(axis: Axes, table: pd.DataFrame, confidence: float) -> None:
    one = table[table["direction"] == 1]  # the norm is the same in every direction's row
    one = one.assign(ratio=one["sample_size"] / one["feature_dimension"])
    places = one[["study", "dimension"]].drop_duplicates()
    symbols = markers(range(int(places.groupby("study")["dimension"].size().max())))
    handles = []
    for study, rows in one.groupby("study", sort=False):
        color = DEGREE_COLORS[int(rows["degree"].iloc[0])]
        for rank, dimension in enumerate(sorted(rows["dimension"].unique())):
            points = summarise_seeds(
                rows[rows["dimension"] == dimension], ["ratio"], "operator_norm",
                confidence=confidence, logarithmic=True,
            )  # fmt: skip
            hollow = study != _first_study(one, rows)
            draw_points(
                axis, points["ratio"], points, hollow=hollow, color=color, marker=symbols[rank]
            )
            width = rows["n_directions"].iloc[0]
            face = {"markerfacecolor": "white"} if hollow else {}
            handles.append(
                kind_handle(f"$d$ = {dimension}, $d_1$ = {width}", color=color,
                            marker=symbols[rank], linestyle="none", **face)
            )  # fmt: skip
    for _, rows in one.groupby("degree"):
        means = rows.groupby("ratio")["operator_norm"].mean()
        place = len(means) // 2
        ends = (float(means.index[0]), float(means.index[-1]))
        draw_guide(axis, ends, (float(means.index[place]), 0.6 * float(means.iloc[place])), -0.5)
    axis.set(xscale="log", xlabel=r"samples per feature, $n\,/\,D$")
    axis.set_ylabel(r"$\|\Delta\|$ (units of $y$)")
    fitted = _slopes(one, "ratio", "operator_norm", _TEACHER)
    axis.set_title(r"(c) operator norm; dotted: slope $-1/2$" + f"\nfitted: {fitted}")
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1)
    finish_logarithmic(axis)


def _slopes(rows: pd.DataFrame, x: str, y: str, by: list[str]) -> str:
    """Slopes of log y on log x of the degrees in words, one intercept per group of ``by``."""
    texts = []
    for (degree,), group in groups(rows, "degree"):
        slope = common_slope(log_of(group, x), log_of(group, y), group, by)
        if not math.isnan(exponent := slope(np.arange(len(group)))):
            texts.append(rf"{exponent:.2f} ($q$ = {degree})")
    return minus(", ".join(texts))


def _first_study(table: pd.DataFrame, rows: pd.DataFrame) -> str:
    """The first study of the degree of ``rows``."""
    return str(table.loc[table["degree"] == rows["degree"].iloc[0], "study"].iloc[0])
