"""Gain in test accuracy by learning rates per layer, the negative control."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.palette import FAINT, THEORY
from spectral_laws.plotting.curvature.panels import (
    DASHED,
    draw_medians,
    label_strips,
    median_handle,
    reference,
)
from spectral_laws.plotting.optimizers.panels import divergence_handle
from spectral_laws.plotting.style import (
    COLUMN_WIDTH,
    SMALL,
    markers,
    ordered_colors,
    styled,
    view_points,
)
from spectral_laws.plotting.tables import groups, plural, shorten, summarise_seeds

PAPER_GAIN = 0.2
"""Points of accuracy that the paper's scalars gain at most; the claims' limit too."""

_NUMBERS = ["variant", "exponent", "n_scaled", "diverged"]
_BASELINE = "none"


@styled
def draw(layer_rates: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """Test accuracy with rates eta (s / sbar)^b per layer minus without, in points.

    Small points: trainings, paired by seed with the one without layer rates. Large points: mean
    over seeds with Student's interval; also of the mean over the positive b. Solid line: no gain;
    dashed: the paper's largest. The last group, the s of the layers exchanged at random, and the
    inverse say what any other factors do. A diverged training counts with the accuracy it was left
    with, and is a cross.
    """
    gains = with_mean(paired_gains(layer_rates))
    variants = _ordered(gains)
    races = [str(race) for race in dict.fromkeys(gains["race"])]
    colors, shapes = ordered_colors(races), markers(races)
    lines = len(races) + int(gains["diverged"].any())
    figure = Figure(figsize=(COLUMN_WIDTH, 2.6 + 0.25 * lines), layout="constrained")
    axis = figure.subplots()
    step = 0.8 / len(races)
    for i, race in enumerate(races):
        rows = gains[gains["race"] == race]
        shift = step * (i - (len(races) - 1) / 2)
        _draw_race(axis, rows, variants, shift, 0.6 * step, colors[race], shapes[race],
                    confidence)  # fmt: skip
    _draw_levels(axis)
    label_strips(axis, [_label(variant) for variant in variants], fontsize=SMALL)
    axis.set_xlabel(r"learning rates $\eta\,(s/\bar{s})^b$ per layer")
    axis.set_ylabel("gain in test accuracy\n(percentage points)")
    handles = [
        Line2D([], [], color=colors[race], marker=shapes[race], linestyle="none",
               label=_describe(layer_rates, gains, race))
        for race in races
    ]  # fmt: skip
    handles.append(median_handle(f"mean over seeds, {100 * confidence:g} % interval"))
    handles.append(Line2D([], [], color=FAINT, linestyle=DASHED, linewidth=0.7,
                          label=f"paper: at most {PAPER_GAIN:g} points"))  # fmt: skip
    if gains["diverged"].any():
        handles.append(divergence_handle("one of the pair diverged"))
    figure.legend(handles=handles, loc="outside upper center", ncols=1)
    return figure


def paired_gains(layer_rates: pd.DataFrame) -> pd.DataFrame:
    """Gains over the variant none of the same race and seed.

    Returns:
        Columns race, model, seed, variant, exponent, n_scaled, diverged (either of the pair), gain
        (points).

    Raises:
        DataError: if no training has a partner without layer rates.
    """
    without = layer_rates["variant"] == _BASELINE
    key = ["race", "model", "seed"]
    baseline = layer_rates.loc[without, [*key, "test_accuracy", "diverged"]]
    pairs = layer_rates[~without].merge(baseline, on=key, suffixes=("", "_without"), validate="m:1")
    if pairs.empty:
        raise DataError("layer_rates table: no training has a partner without layer rates")
    gain = 100 * (pairs["test_accuracy"] - pairs["test_accuracy_without"])
    pairs["diverged"] = (pairs["diverged"] | pairs["diverged_without"]).astype(bool)
    return pairs[[*key, *_NUMBERS]].assign(gain=gain)


def with_mean(gains: pd.DataFrame) -> pd.DataFrame:
    """The gains with a variant ``mean``, over the positive exponents of each training."""
    positive = gains[gains["variant"].str.startswith("b =")]
    means = positive.groupby(["race", "model", "seed"], sort=False).agg(
        n_scaled=("n_scaled", "max"), gain=("gain", "mean")
    )
    # Stands behind all positive exponents.
    means = means.reset_index().assign(variant="mean", exponent=1e2, diverged=False)
    return pd.concat([gains, means], ignore_index=True)


def _ordered(gains: pd.DataFrame) -> list[str]:
    """Positive exponents first, then negative ones, then the control without exponent."""
    first = gains.drop_duplicates("variant")
    rank = first["exponent"].abs() + 1e3 * (first["exponent"] < 0)
    return [str(name) for name in first.loc[rank.sort_values(na_position="last").index, "variant"]]


def _label(variant: str) -> str:
    if variant == "inverse":
        return "inverse\n$b=-1$"
    if variant == "mean":
        return "mean,\n$b>0$"
    if variant == "random":
        return "exchanged\n$b=1$"
    return f"${variant.replace(' ', '')}$"


def _draw_race(
    axis: Axes, rows: pd.DataFrame, variants: list[str], shift: float, width: float, color: str,
    marker: str, confidence: float,
) -> None:  # fmt: skip
    # Trainings left, their mean right of the place: accuracies are few, and many coincide.
    seeds = {seed: i for i, seed in enumerate(sorted(rows["seed"].unique()))}
    spread = np.linspace(-0.5, 0.5, len(seeds)) if len(seeds) > 1 else np.zeros(1)
    for (variant,), part in groups(rows, "variant"):
        place = variants.index(variant) + shift
        x = place + width * (0.7 * spread[part["seed"].map(seeds).to_numpy()] - 0.25)
        lost = part["diverged"].to_numpy()
        axis.plot(x[~lost], part["gain"][~lost], marker, color=color, markersize=2.2, alpha=0.6,
                  markeredgewidth=0, zorder=2)  # fmt: skip
        axis.plot(x[lost], part["gain"][lost], "x", color=color, markersize=3, zorder=2)
        mean = summarise_seeds(part, ["variant"], "gain", confidence=confidence)
        draw_medians(axis, place + 0.4 * width, mean, color=color, marker=marker)


def _draw_levels(axis: Axes) -> None:
    """No gain, and the paper's largest; both are always in view."""
    axis.axhline(0, color=THEORY, linewidth=0.7, zorder=0)
    reference(axis, PAPER_GAIN)
    view_points(axis, -2 * PAPER_GAIN, 2 * PAPER_GAIN)


def _describe(layer_rates: pd.DataFrame, gains: pd.DataFrame, race: str) -> str:
    """'images (mlp): 5 seeds, 4 layers, 98.54 % without; one test sample is 0.25 points'."""
    mine, rows = gains[gains["race"] == race], layer_rates[layer_rates["race"] == race]
    fewest, most = mine["n_scaled"].min(), mine["n_scaled"].max()
    layers = plural(int(most), "layer") if fewest == most else f"{fewest}-{most} layers"
    without = rows.loc[rows["variant"] == _BASELINE, "test_accuracy"].mean()
    seeds = plural(int(mine["seed"].nunique()), "seed")
    sample = 100 / rows["n_test"].min()
    model = shorten(str(rows["model"].iloc[0]), limit=16)
    return (
        f"{shorten(race, limit=16)} ({model}): {seeds}, {layers},\n"
        f"{100 * without:.4g} % without; one test sample is {sample:.2g} points"
    )
