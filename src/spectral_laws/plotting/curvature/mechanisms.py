"""The paper's mechanisms, each with its control: networks that differ in one attribute."""

import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.palette import GROUP_COLORS
from spectral_laws.plotting.curvature.panels import (
    check_roles,
    describe_layers,
    draw_medians,
    draw_strip,
    fitted,
    label_logarithmic,
    label_roles,
    median_handle,
    reference,
    roles_of,
    seed_medians,
)
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, ordered_colors, styled, view_points
from spectral_laws.plotting.tables import plural, summarise_seeds

_SLOPES = {"phi_a": r"$\rho_A$", "phi_delta": r"$\rho_\delta$"}
_ROLES = {
    "task": "(e) task",
    "outputs": "(f) number of outputs",
    "batch_norm": "(g) normalisation",
    "separable": "(h) separable",
}
_ON_WHITE: dict[str, Any] = {"frameon": True, "framealpha": 0.8, "edgecolor": "none"}
_VARIANTS = {
    ("normalisation", "none"): "without",
    ("normalisation", "layer"): "layer norm",
    ("normalisation", "batch"): "batch norm",
    ("separable", "true"): "separable",
    ("separable", "false"): "full",
}


@styled
def draw(experiments: pd.DataFrame, spectra: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """Eight comparisons of networks that differ in one attribute; missing ones are left out.

    (a) Slope of log rho_A on log sigma with and without layer normalisation. (b) Slope of log
    rho_delta against the scale of the residual connections. (c) alpha of heads and of the other
    layers against the number of classes. (d) rho_delta of heads against rank k, geometric mean
    over seeds, a dashed line at k = number of classes. (e) to (h) alpha by role of layer. Faint
    points: one layer of one seed; large ones: median over layers, mean over seeds with Student's
    interval.
    """
    rows = check_roles(experiments, name="experiments")
    rows = rows[rows["final"].astype(bool)]
    figure = Figure(layout="constrained")
    axes = figure.subplots(4, 2)
    _draw_slopes(axes[0, 0], _of(rows, "layer_norm"), "phi_a", "(a) normalisation", confidence)
    _draw_slopes(axes[0, 1], _of(rows, "residual"), "phi_delta", "(b) skip scale", confidence)
    _draw_classes(axes[1, 0], _of(rows, "classes"), confidence)
    _draw_alignment(axes[1, 1], _of(rows, "classes"), spectra, confidence)
    for axis, (name, title) in zip(axes[2:].flat, _ROLES.items(), strict=True):
        _draw_roles(axis, _of(rows, name), title, confidence)
    _arrange(figure)
    figure.legend(handles=[median_handle()], loc="outside upper center")
    return figure


def _arrange(figure: Figure) -> None:
    """Panels with data in two columns, under the letters they always have; a note names others."""
    missing = [axis for axis in figure.axes if not axis.axison]
    names = [axis.get_title(loc="left") for axis in missing]
    for axis in missing:
        axis.remove()
    lines = max(-(-len(figure.axes) // 2), 1)
    grid = figure.add_gridspec(lines, 2)
    for place, axis in enumerate(figure.axes):
        axis.set_subplotspec(grid[place // 2, place % 2])
    note = f"Not in this preset, or without a fit: {'; '.join(names)}." if names else ""
    text = textwrap.fill(note, 110)
    figure.set_size_inches(TEXT_WIDTH, 1.9 * lines + 0.2 + 0.13 * (text.count("\n") + bool(text)))
    if text:
        figure.supxlabel(text, fontsize=SMALL + 0.5, color="0.35")


def _of(rows: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Rows of one experiment, ordered by value, or as they come where values are missing."""
    mine = rows[rows["experiment"] == experiment]
    ordered: pd.DataFrame = mine.sort_values("value", kind="stable")
    return ordered


def _variant_name(variant: str, over: str) -> str:
    """A variant in words."""
    name = _VARIANTS.get((over, variant), str(variant).replace("_", " "))
    return f"{name} classes" if over == "n_classes" else name


def _missing(axis: Axes, title: str) -> None:
    """Mark a panel that has nothing to show."""
    axis.set_axis_off()
    axis.set_title(title)


def _draw_slopes(axis: Axes, rows: pd.DataFrame, value: str, title: str, confidence: float) -> None:
    kept = rows[rows[value].notna()]
    if kept.empty:
        _missing(axis, title)
        return
    variants = list(dict.fromkeys(kept["variant"]))
    colors = ordered_colors(variants)
    reference(axis, 0.0)
    for i, variant in enumerate(variants):
        mine = kept[kept["variant"] == variant]
        draw_strip(axis, i, mine, value, color=colors[variant], confidence=confidence)
    counts = [int((kept["variant"] == variant).sum()) for variant in variants]
    names = [_variant_name(variant, str(kept["over"].iloc[0])) for variant in variants]
    labels = [f"{name}\nn = {count}" for name, count in zip(names, counts, strict=True)]
    axis.set_xticks(range(len(variants)), labels)
    axis.set_xlim(-0.6, len(variants) - 0.4)
    view_points(axis, 0)
    axis.set_ylabel(rf"slope of log {_SLOPES[value]} on log $\sigma$")
    axis.set_title(f"{title}: {describe_layers(kept)}")


def _draw_classes(axis: Axes, rows: pd.DataFrame, confidence: float) -> None:
    title = r"(c) $\alpha$ against number of classes"
    fits = fitted(rows)
    if fits["value"].notna().sum() == 0:
        _missing(axis, title)
        return
    reference(axis, 1, 2)
    for name, part, color, marker in (
        ("head", fits[fits["kind"] == "head"], GROUP_COLORS["head"], "o"),
        ("other layers", fits[fits["kind"] != "head"], GROUP_COLORS["linear"], "s"),
    ):
        if part.empty:
            continue
        summary = seed_medians(part, ["value"], "alpha", confidence=confidence)
        axis.plot(summary["value"], summary["centre"], color=color, linewidth=0.6, zorder=1,
                  label=name, marker=marker)  # fmt: skip
        draw_medians(axis, summary["value"], summary, color=color, marker=marker)
    heads = rows[(rows["kind"] == "head") & (rows["status"] == "fit")]
    classes = sorted(rows["value"].dropna().unique())
    with_head = set(heads["value"])
    axis.set_xscale("log")
    axis.set_xticks(
        classes,
        [f"{value:g}" + ("" if value in with_head else "\n(head: no fit)") for value in classes],
    )
    axis.set_xticks([], minor=True)
    axis.set_xlim(classes[0] / 1.6, classes[-1] * 1.6)
    axis.set(xlabel="number of classes", ylabel=r"$\alpha$")
    view_points(axis, 1, 2)
    axis.legend(loc="best", **_ON_WHITE)
    axis.set_title(f"{title}: {describe_layers(rows)}")


def _draw_alignment(
    axis: Axes, rows: pd.DataFrame, spectra: pd.DataFrame, confidence: float
) -> None:
    title = r"(d) $\rho_\delta$ of heads against rank $k$"
    classes = rows.dropna(subset=["value"]).groupby("model")["value"].first().sort_values()
    heads = spectra[(spectra["kind"] == "head") & (spectra["part"] == "whole") & spectra["final"]]
    heads = heads[heads["model"].isin(classes.index) & (heads["rho_delta"] > 0)]
    if heads.empty:
        _missing(axis, title)
        return
    colors = ordered_colors(classes.to_numpy())
    for model, count in classes.items():
        mine = heads[heads["model"] == model]
        if mine.empty:
            continue
        line = summarise_seeds(mine, ["index"], "rho_delta", confidence=confidence,
                               logarithmic=True)  # fmt: skip
        last = int(line["index"].max())
        axis.plot(line["index"], line["centre"], "o-", color=colors[count], linewidth=0.7,
                  markersize=2.4, label=f"{count:g} classes, $k\\leq{last}$")  # fmt: skip
        axis.fill_between(line["index"], line["low"], line["high"], color=colors[count],
                          alpha=0.2, linewidth=0)  # fmt: skip
        if count - 1 <= heads["index"].max():
            axis.axvline(count, color=colors[count], linestyle=(0, (4, 2)), linewidth=0.8)
    beyond = heads["index"] > heads["model"].map(classes)
    found = plural(int(beyond.sum()), "direction") if beyond.any() else "no direction"
    axis.set(xscale="log", yscale="log", xlabel=r"rank $k$", ylabel=r"$\rho_\delta$")
    axis.set_title(f"{title}: {found} beyond $k=c$")
    label_logarithmic(axis)
    axis.legend(loc="best", **_ON_WHITE)


def _draw_roles(axis: Axes, rows: pd.DataFrame, title: str, confidence: float) -> None:
    fits = fitted(rows)
    if fits.empty:
        _missing(axis, title)
        return
    roles, variants = roles_of(fits), list(dict.fromkeys(fits["variant"]))
    colors, over = ordered_colors(variants), str(fits["over"].iloc[0])
    reference(axis, 1, 2)
    step = 0.8 / len(variants)
    for i, variant in enumerate(variants):
        shift = step * (i - (len(variants) - 1) / 2)
        _draw_variant(axis, fits[fits["variant"] == variant], roles, shift, 0.8 * step,
                      colors[variant], confidence)  # fmt: skip
        axis.plot([], [], "o", color=colors[variant], label=_variant_name(variant, over))
        _note_missing(axis, rows[rows["variant"] == variant], roles, shift)
    label_roles(axis, roles)
    axis.set_ylabel(r"$\alpha$")
    view_points(axis, 1, 2)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.22 * (high - low))  # room for the legend
    axis.legend(loc="upper center", ncols=len(variants), **_ON_WHITE)
    axis.set_title(f"{title}: {describe_layers(rows)}")


def _note_missing(axis: Axes, rows: pd.DataFrame, roles: Sequence[str], shift: float) -> None:
    """Write 'no fit' where a variant has layers of a role and none of them a fit."""
    unfitted = set(rows["role"]) - set(fitted(rows)["role"])
    for place, role in enumerate(roles):
        if role in unfitted:
            axis.text(place + shift, 1.5, "no fit", rotation=90, ha="center", va="center",
                      fontsize=SMALL, color="0.35")  # fmt: skip


def _draw_variant(
    axis: Axes, rows: pd.DataFrame, roles: Sequence[str], shift: float, width: float, color: str,
    confidence: float,
) -> None:  # fmt: skip
    for place, role in enumerate(roles):
        draw_strip(axis, place + shift, rows[rows["role"] == role], "alpha", color=color,
                   confidence=confidence, width=width)  # fmt: skip
