"""Test error of the spectral estimator against sample size, with theory and baseline."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.plotting.style import (
    FAINT,
    column_panels,
    label_decades,
    markers,
    ordered_colors,
    styled,
)
from spectral_laws.plotting.tables import plural, require, study_name, summarise_seeds

_STUDY = ("study", "degree", "dimension", "feature_dimension", "gamma", "readout", "seed")
_METRICS = (*_STUDY, "sample_size", "second_layer", "mse", "tail_mse")
_KERNEL = (*_STUDY, "sample_size", "mse")
# A kernel that holds the target exactly goes down to rounding; the law is in the decades above.
_FLOOR, _CEILING = 1e-3, 10.0
_LINES: dict[str, dict[str, Any]] = {
    "same_sample": {"marker": "+", "linewidth": 0.5, "alpha": 0.6},
    "outliers": {"marker": "x", "markersize": 2.4, "linewidth": 0.5, "alpha": 0.6},
    "kernel": {"linestyle": "none", "marker": "o", "markersize": 2.4, "markerfacecolor": "white"},
    "tail": {"linestyle": (0, (4, 1.5)), "linewidth": 0.8},
}


@styled
def draw_recovery_mse(
    metrics: pd.DataFrame, kernel: pd.DataFrame | None = None, *, confidence: float = 0.95
) -> Figure:
    """Test MSE / Var(y) against n / D, log-log, one panel per study.

    Per dimension (colour and marker): filled points are the spectral estimator with the
    independent second layer, geometric mean over seeds with Student's interval of the log; the
    dashed line is the finite-d1 tail sum, sum of lambda_i^2 over i > m(n) with
    m(n) = (Z^2 n / D)^(1/(2 gamma)); hollow points are kernel ridge regression. The same-sample
    and the outliers-only second layer are drawn for the largest dimension of the study alone.
    Errors below 1e-3 are triangles on the lower edge; intervals are cut at 10.

    Args:
        metrics: table of ``recover_features``.
        kernel: table of ``fit_kernel_ridge``; None or no rows draws no baseline.
        confidence: level of the intervals.

    Raises:
        DataError: if a column is missing, or there are no rows with the independent layer.
        NumericalError: if an error is NaN, infinite or not positive.
    """
    require(metrics, _METRICS, name="metrics")
    main = metrics[metrics["second_layer"] == "independent"]
    if main.empty:
        raise DataError("metrics table: no rows with second_layer 'independent'")
    if kernel is not None and len(kernel):
        require(kernel, _KERNEL, name="kernel")
    else:
        kernel = None
    studies = list(dict.fromkeys(main["study"]))
    figure, axes = column_panels(len(studies), height=1.75, header=0.6)
    for axis, study in zip(axes, studies, strict=True):
        of_study = metrics[metrics["study"] == study]
        # Colours by rank among all dimensions of this degree: the same in every panel.
        degree = of_study["degree"].iloc[0]
        dimensions = sorted(main.loc[main["degree"] == degree, "dimension"].unique())
        baseline = None if kernel is None else kernel[kernel["study"] == study]
        _draw_study(axis, of_study, baseline, dimensions, confidence)
    figure.supylabel(r"test MSE / Var($y$)", fontsize=7)
    figure.supxlabel(r"samples per feature, $n\,/\,D$", fontsize=7)
    present = set(metrics["second_layer"]) | ({"kernel"} if kernel is not None else set())
    figure.legend(handles=_kinds(present), loc="outside upper center", ncols=2)
    return figure


def _draw_study(
    axis: Axes,
    metrics: pd.DataFrame,
    kernel: pd.DataFrame | None,
    dimensions: list[int],
    confidence: float,
) -> None:
    colors, symbols = ordered_colors(dimensions), markers(dimensions)
    here = sorted(metrics["dimension"].unique())
    for dimension in here:
        color, marker = colors[dimension], symbols[dimension]
        rows = metrics[metrics["dimension"] == dimension]
        size = int(rows["feature_dimension"].iloc[0])
        layers = dict(iter(rows.groupby("second_layer")))
        if "independent" in layers:
            points = _mean(layers["independent"], confidence)
            _errorbar(axis, points, size, color=color, marker=marker, linestyle="none", zorder=3)
            tail = layers["independent"].groupby("sample_size")["tail_mse"].mean()
            # Once every direction is past its threshold the sum is empty: no point on a log axis.
            tail = tail[tail > 0]
            axis.plot(tail.index / size, tail.to_numpy(), color=color, **_LINES["tail"])
        for layer in ("same_sample", "outliers"):
            if dimension == here[-1] and layer in layers:
                points = _mean(layers[layer], confidence)
                axis.plot(
                    points["sample_size"] / size, points["centre"], color=color, **_LINES[layer]
                )
        if kernel is not None and (kernel["dimension"] == dimension).any():
            points = _mean(kernel[kernel["dimension"] == dimension], confidence)
            _errorbar(axis, points, size, color=color, capsize=0, zorder=4, **_LINES["kernel"])
            below = points.loc[points["centre"] < _FLOOR, "sample_size"] / size
            if len(below):
                edge = {**_LINES["kernel"], "marker": "v", "clip_on": False}
                axis.plot(below, np.full(len(below), _FLOOR), color=color, **edge)
    axis.set(xscale="log", yscale="log")
    low, high = axis.get_ylim()
    axis.set_ylim(max(low, _FLOOR), min(high, _CEILING))
    label_decades(axis)
    axis.legend(handles=_dimensions(metrics, colors, symbols), loc="lower left", handlelength=1)
    axis.set_title(_title(metrics), loc="left")


def _mean(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    return summarise_seeds(rows, ["sample_size"], "mse", confidence=confidence, logarithmic=True)


def _errorbar(axis: Axes, points: pd.DataFrame, size: int, **line: Any) -> None:  # noqa: ANN401
    centre = points["centre"].to_numpy()
    spread = np.stack([centre - points["low"], points["high"] - centre])
    axis.errorbar(points["sample_size"] / size, centre, yerr=spread, **line)


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    seeds = sorted(rows.groupby("dimension")["seed"].nunique().unique())
    count = plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]} seeds"
    return (
        rf"{study_name(first['study'])}$q$ = {first['degree']}, $\gamma$ = {first['gamma']:g}, "
        rf"{first['readout']}, {count}"
    )


def _dimensions(
    rows: pd.DataFrame, colors: dict[int, str], symbols: dict[int, str]
) -> list[Line2D]:
    sizes = dict(sorted(zip(rows["dimension"], rows["feature_dimension"], strict=True)))
    return [
        Line2D([], [], color=colors[d], marker=symbols[d], linestyle="none",
               label=rf"$d$ = {d}, $D$ = {size}")
        for d, size in sizes.items()
    ]  # fmt: skip


def _kinds(present: set[str]) -> list[Line2D]:
    grey: dict[str, Any] = {"color": FAINT}
    handles = [
        Line2D([], [], marker="o", linestyle="none", label="spectral, independent layer", **grey),
        Line2D([], [], label="theory: tail sum", **grey, **_LINES["tail"]),
    ]
    labels = {
        "same_sample": r"same-sample layer, largest $d$",
        "outliers": r"outliers only, largest $d$",
    }
    handles += [
        Line2D([], [], label=label, color="0.3", **_LINES[layer])
        for layer, label in labels.items()
        if layer in present
    ]
    if "kernel" in present:
        label = "kernel ridge regression"
        handles.append(Line2D([], [], label=label, color="0.3", **_LINES["kernel"]))
    return handles
