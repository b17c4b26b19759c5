"""Effects of finite d: what true features lose, and how wide the transition is."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.fitting.recovery_windows import HIDDEN, RECOVERED
from spectral_laws.palette import FAINT, MEASURED, OUTLIER, THEORY
from spectral_laws.plotting.power_fits import Bootstrap, PowerFit, crossing_fit, mean_fit
from spectral_laws.plotting.recovery.panels import (
    GUIDE,
    describe,
    draw_points,
    finish_logarithmic,
    label_dimensions,
    of_study,
    seed_range,
)
from spectral_laws.plotting.style import TEXT_WIDTH, styled
from spectral_laws.plotting.tables import groups, summarise_seeds

_HALF = 0.5


@styled
def draw(
    population: pd.DataFrame,
    directions: pd.DataFrame,
    *,
    study: str = "quadratic",
    transition: str = "smoothing",
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Figure:
    """The gap of finite d, at infinitely many samples and at a given n / D, against d.

    (a) 1 - cos^2 at infinitely many samples: the strongest direction, with its limit at large d
    (line), and the mean over the directions that are recovered (cos^2 >= 1/2). (b) The share of
    directions that are not. (c) At the largest n / D that all d reach: predicted minus measured
    cos^2, of the strongest direction and as the mean over directions that are recovered in both.
    (d) The width in log n of direction 1's transition, from where the mean over seeds of cos^2
    crosses 0.1 to where it crosses 0.9, with the sharp theory (line) and its limit for a weak
    direction, log 9 (dotted). Points have bootstrap intervals; dashed lines are fitted powers of d,
    in (d) a fitted slope on log d.
    """
    rows = of_study(directions, study, name="directions")
    sharpening = of_study(directions, transition, name="directions")
    figure = Figure(figsize=(TEXT_WIDTH, 5.0), layout="constrained")
    limit, share, finite, width = figure.subplots(2, 2).flat
    bootstrap = Bootstrap(confidence, resamples)
    _draw_limit(limit, share, population, bootstrap)
    _draw_finite(finite, rows, bootstrap)
    _draw_width(width, sharpening, bootstrap)
    return figure


def _draw_limit(axis: Axes, below: Axes, population: pd.DataFrame, bootstrap: Bootstrap) -> None:
    lost = population.assign(loss=1 - population["cos2"], hidden=population["cos2"] < _HALF)
    strongest = lost[lost["direction"] == 1]
    kept = lost[~lost["hidden"]].groupby(["dimension", "seed"], as_index=False)[["loss"]].mean()
    fits = {
        "direction 1": (mean_fit(strongest, "loss", bootstrap=bootstrap), MEASURED, "o"),
        "mean of recovered": (mean_fit(kept, "loss", bootstrap=bootstrap), OUTLIER, "s"),
    }
    for name, (fit, color, marker) in fits.items():
        _draw_fit(axis, fit, name, color, marker)
    tilt = strongest.groupby("dimension")["tilt"].mean()
    axis.plot(
        tilt.index,
        tilt,
        color=THEORY,
        linewidth=0.9,
        zorder=2,
        label="direction 1, limit of large $d$",
    )
    width = lost.groupby(["dimension", "seed"], as_index=False)[["hidden"]].mean()
    points = summarise_seeds(
        width.astype({"hidden": np.float64}), ["dimension"], "hidden",
        confidence=bootstrap.confidence, bounds=(0, 1),
    )  # fmt: skip
    draw_points(below, points["dimension"], points, color=MEASURED, marker="D")
    first = population.iloc[0]
    finish_logarithmic(axis)
    _finish(axis, r"$1-\cos^2\theta$", population["dimension"])
    axis.set_title(
        rf"(a) infinitely many samples, $q$ = 2, $\gamma$ = {first['gamma']:g}, "
        f"{seed_range(population.assign(study=''))}"
    )
    top = max(0.2, 1.1 * float(points["high"].max()))
    below.set(xscale="log", ylim=(-0.03 * top, top), ylabel="share of the directions")
    below.set_xlabel(r"input dimension $d$")
    below.set_title(r"(b) directions with $\cos^2\theta<1/2$ at any $n$")  # fmt: skip
    below.set_xlim(axis.get_xlim())
    label_dimensions(below, population["dimension"])


def _draw_finite(axis: Axes, rows: pd.DataFrame, bootstrap: Bootstrap) -> None:
    ratio, gaps = gaps_at_common_ratio(rows)
    strongest = gaps[gaps["direction"] == 1]
    both = gaps[(gaps["cos2"] >= _HALF) & (gaps["predicted_cos2"] >= _HALF)]
    kept = both.groupby(["dimension", "seed"], as_index=False)[["gap"]].mean()
    _draw_fit(axis, mean_fit(strongest, "gap", bootstrap=bootstrap), "direction 1", MEASURED, "o")
    _draw_fit(axis, mean_fit(kept, "gap", bootstrap=bootstrap), "mean of recovered", OUTLIER, "s")
    finish_logarithmic(axis)
    _finish(axis, r"predicted $-$ measured $\cos^2\theta$", rows["dimension"])
    title = describe(rows)
    axis.set_title(rf"(c) $n/D$ = {ratio:.3g}: {title}")


def _draw_width(axis: Axes, rows: pd.DataFrame, bootstrap: Bootstrap) -> None:
    first = rows[rows["direction"] == 1]
    ends: dict[str, float] = {"level": RECOVERED, "over": HIDDEN}
    fit = crossing_fit(first, "cos2", bootstrap=bootstrap, **ends)
    theory = crossing_fit(first, "predicted_cos2", bootstrap=None, **ends).points
    points = fit.points.assign(
        **{name: np.log(fit.points[name]) for name in ("centre", "low", "high")}
    )
    label = f"direction 1, slope {fit.label()}"
    if fit.missing:
        label += f"; {HIDDEN:g} or {RECOVERED:g} not crossed at {len(fit.missing)} $d$"
    draw_points(axis, points["x"], points, color=MEASURED, label=label)
    if not np.isnan(fit.slope) and len(points) > 2:
        x = np.array([points["x"].min(), points["x"].max()])
        axis.plot(x, np.log(fit.line(x)), color=MEASURED, linestyle="--", linewidth=0.7, zorder=1)
    axis.plot(
        theory["x"], np.log(theory["centre"]), color=THEORY, linewidth=0.9, label="sharp theory"
    )
    axis.axhline(np.log(9), color=FAINT, linestyle=GUIDE, linewidth=0.9, zorder=0,
                 label=r"$\log\,9$, weak direction")  # fmt: skip
    _finish(axis, r"$\log\,[n(\cos^2\theta=0.9)\,/\,n(0.1)]$", rows["dimension"])
    axis.set_title(
        rf"(d) width of the transition: $q$ = {first['degree'].iloc[0]}, "
        rf"$d_1$ = {first['n_directions'].max()}, {seed_range(rows)}"
    )


def gaps_at_common_ratio(rows: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """cos^2, its prediction and their gap at the largest n / D that every d reaches.

    Interpolated in log n between the two neighbouring sample sizes.

    Returns:
        n / D, and one row per dimension, seed and direction.

    Raises:
        DataError: if some d has no sample size as small as that.
    """
    ratios = (rows["sample_size"] / rows["feature_dimension"]).groupby(rows["dimension"])
    ratio = float(ratios.max().min())
    if ratio < float(ratios.min().max()):
        raise DataError(
            "directions table: the dimensions of "
            f"{rows['study'].iloc[0]} have no sample size per feature in common"
        )
    gaps = []
    for (dimension, seed, direction), curve in groups(rows, "dimension", "seed", "direction"):
        ordered = curve.sort_values("sample_size")
        place = np.log(ordered["sample_size"] / ordered["feature_dimension"])
        cos2, predicted = (
            float(np.interp(np.log(ratio), place, ordered[name]))
            for name in ("cos2", "predicted_cos2")
        )
        gaps.append((dimension, seed, direction, cos2, predicted, predicted - cos2))
    columns = ["dimension", "seed", "direction", "cos2", "predicted_cos2", "gap"]
    return ratio, pd.DataFrame(gaps, columns=columns)


def _draw_fit(axis: Axes, fit: PowerFit, name: str, color: str, marker: str) -> None:
    points = fit.points.assign(low=np.maximum(fit.points["low"], fit.points["centre"] / 10))
    label = rf"{name}, slope {fit.label()}"
    if fit.missing:
        label += f"; not positive at {len(fit.missing)} of {len(fit.missing) + len(points)} $d$"
    draw_points(axis, points["x"], points, color=color, marker=marker, label=label)
    if not np.isnan(fit.slope) and len(points) > 2:  # a line through two points says nothing
        ends = np.array([points["x"].min(), points["x"].max()])
        axis.plot(ends, fit.line(ends), color=color, linestyle="--", linewidth=0.7, zorder=1)


def _finish(axis: Axes, label: str, dimensions: pd.Series) -> None:
    axis.set(xscale="log", ylabel=label, xlabel=r"input dimension $d$")
    label_dimensions(axis, dimensions)
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.22))
