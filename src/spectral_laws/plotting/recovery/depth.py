"""The advantage of depth: sample sizes of the spectral method against those of kernels."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.palette import METHOD_COLORS, METHOD_NAMES
from spectral_laws.plotting.power_fits import Bootstrap, PowerFit, crossing_fit
from spectral_laws.plotting.recovery.panels import (
    GUIDE,
    describe,
    draw_guide,
    draw_points,
    finish_logarithmic,
    kind_handle,
    label_dimensions,
    of_largest_dimension,
    of_layer,
    of_study,
    seed_range,
)
from spectral_laws.plotting.style import TEXT_WIDTH, markers, styled
from spectral_laws.plotting.tables import summarise_seeds

_KERNELS = ("polynomial", "arc_cosine", "rbf")
_STUDIES = (("depth_linear", "smoothing"), ("depth_quadratic", "wide"))
"""Studies of degree 1 and 2: of the kernels, and of the spectral method with one width at all d."""
_LEVEL = 0.5
_BELOW = r"$\downarrow$"  # mark at the lower edge
_FLOOR = 1e-4  # a kernel that holds the target exactly goes down to rounding


@styled
def draw(
    metrics: pd.DataFrame,
    directions: pd.DataFrame,
    baselines: pd.DataFrame,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Figure:
    """Sample sizes against d (top) and test error against n (bottom), degree 1 left, 2 right.

    Top: the n at which the mean over seeds of cos^2 of direction 1 crosses 1/2 (spectral method),
    and at which that of the kernels' MSE / Var(y) falls through 1/2, with bootstrap intervals; the
    legend gives the fitted exponents in d. Dotted: slopes q and 2q. The line is the sharp theory's
    n. Bottom: the MSE of every method at the largest d with baselines, geometric mean over seeds
    with Student's interval, the spectral one with the independent second layer and its prediction.
    """
    bootstrap = Bootstrap(confidence, resamples)
    figure = Figure(figsize=(TEXT_WIDTH, 6.2), layout="constrained")
    axes = figure.subplots(2, 2)
    for column, (deep, spectral) in enumerate(_STUDIES):
        kernels = of_study(baselines, deep, name="baselines")
        overlaps = of_study(directions, spectral, name="directions")
        _draw_sizes(axes[0, column], kernels, overlaps, "ab"[column], bootstrap)
        own = of_study(metrics, deep, name="metrics")
        _draw_errors(axes[1, column], kernels, own, "cd"[column], confidence)
    axes[0, 0].set_ylabel(r"sample size $n$ that is needed")
    axes[1, 0].set_ylabel(r"test MSE / Var($y$)")
    handles: dict[str, Artist] = {}
    for axis in axes[1]:
        found, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    line = kind_handle("sharp theory", color=METHOD_COLORS["spectral"], linewidth=0.9)
    figure.legend(
        handles=[*handles.values(), line], loc="outside lower center", ncols=4, handlelength=1.5,
        title=f"test error (c, d); an arrow at the edge: below {_FLOOR:g}",
    )  # fmt: skip
    return figure


def sample_sizes(
    kernels: pd.DataFrame, overlaps: pd.DataFrame, bootstrap: Bootstrap
) -> dict[str, PowerFit]:
    """Sample sizes against d, by method: kernels' at MSE 1/2, direction 1's at cos^2 = 1/2."""
    first = overlaps[overlaps["direction"] == 1]
    fits = {"spectral": crossing_fit(first, "cos2", level=_LEVEL, bootstrap=bootstrap)}
    explained = kernels.assign(explained=1 - kernels["mse"])
    for method in _KERNELS:
        rows = explained[explained["method"] == method]
        if len(rows):
            fits[method] = crossing_fit(rows, "explained", level=1 - _LEVEL, bootstrap=bootstrap)
    return fits


def _widths(table: pd.DataFrame) -> str:
    """Number of directions, or its range."""
    low, high = int(table["n_directions"].min()), int(table["n_directions"].max())
    return f"{low}" if low == high else f"{low} to {high}"


def _draw_sizes(
    axis: Axes, kernels: pd.DataFrame, overlaps: pd.DataFrame, letter: str, bootstrap: Bootstrap
) -> None:
    fits = sample_sizes(kernels, overlaps, bootstrap)
    if all(fit.points.empty for fit in fits.values()):
        raise DataError(
            f"no sample size of {overlaps['study'].iloc[0]} or {kernels['study'].iloc[0]} crosses "
            "1/2, nothing to draw"
        )
    symbols = markers(METHOD_COLORS)
    degree = int(kernels["degree"].iloc[0])
    for method, fit in fits.items():
        label = f"{METHOD_NAMES[method]}: {fit.label()}"
        if fit.missing:
            label += f"; 1/2 not crossed at {len(fit.missing)} $d$"
        draw_points(
            axis, fit.points["x"], fit.points, color=METHOD_COLORS[method],
            marker=symbols[method], label=label,
        )  # fmt: skip
        if method in ("spectral", "polynomial") and len(fit.points):
            slope = degree if method == "spectral" else 2 * degree
            place = fit.points.iloc[len(fit.points) // 2]
            ends = (float(fit.points["x"].min()), float(fit.points["x"].max()))
            # Half an octave below, so that points do not hide the guide.
            through = (float(place["x"]), 0.7 * float(place["centre"]))
            draw_guide(axis, ends, through, slope)
    first = overlaps[overlaps["direction"] == 1]
    theory = crossing_fit(first, "predicted_cos2", level=_LEVEL, bootstrap=None)
    if len(theory.points):
        axis.plot(
            theory.points["x"], theory.points["centre"], color=METHOD_COLORS["spectral"],
            linewidth=0.9, zorder=2,
        )  # fmt: skip
    axis.set(xscale="log", xlabel=r"input dimension $d$")
    finish_logarithmic(axis)
    label_dimensions(axis, [d for fit in fits.values() for d in fit.points["x"]])
    handles, _ = axis.get_legend_handles_labels()
    guide = kind_handle(f"guides, slopes {degree} and {2 * degree}", linestyle=GUIDE)
    widths = [_widths(table) for table in (overlaps, kernels)]
    heading = (
        f"({letter}) $q$ = {degree}; spectral $d_1$ = {widths[0]}, {seed_range(overlaps)}; "
        f"kernels $d_1$ = {widths[1]}, {seed_range(kernels)}\nexponent of $n$ in $d$"
    )
    axis.legend(
        handles=[*handles, guide], title=heading, loc="lower left", bbox_to_anchor=(-0.02, 1.0),
        alignment="left", handlelength=1.5,
    )  # fmt: skip


def _draw_errors(
    axis: Axes, kernels: pd.DataFrame, metrics: pd.DataFrame, letter: str, confidence: float
) -> None:
    kernels = of_largest_dimension(kernels)
    own = of_layer(metrics[metrics["dimension"] == kernels["dimension"].iloc[0]], "independent")
    symbols = markers(METHOD_COLORS)
    methods: Sequence[str] = [m for m in METHOD_COLORS if (kernels["method"] == m).any()]
    below: dict[str, list[int]] = {}
    for method in ("spectral", *methods):
        rows = own if method == "spectral" else kernels[kernels["method"] == method]
        points = summarise_seeds(
            rows, ["sample_size"], "mse", confidence=confidence, logarithmic=True
        )
        color = METHOD_COLORS[method]
        if method == "spectral":
            theory = summarise_seeds(
                rows, ["sample_size"], "predicted_mse", confidence=confidence, logarithmic=True
            )
            axis.plot(theory["sample_size"], theory["centre"], color=color, linewidth=0.9)
        else:  # a thread through the points: there is no theory of them here
            axis.plot(
                points["sample_size"], points["centre"], color=color, linewidth=0.4, alpha=0.6
            )
        draw_points(
            axis, points["sample_size"], points, color=color, marker=symbols[method],
            label=METHOD_NAMES[method],
        )  # fmt: skip
        below[color] = points.loc[points["centre"] <= _FLOOR, "sample_size"].tolist()
    axis.set(xscale="log", xlabel=r"sample size $n$")
    finish_logarithmic(axis, floor=_FLOOR)
    for color, sizes in below.items():
        if not sizes:
            continue  # an empty line that is not clipped would count as one at the page's corner
        height = axis.get_ylim()[0]
        axis.plot(
            sizes, [height] * len(sizes), linestyle="none", marker=_BELOW, markersize=5,
            color=color, clip_on=False, zorder=4,
        )  # fmt: skip
    axis.set_title(f"({letter}) {describe(kernels, dimension=True)}")
