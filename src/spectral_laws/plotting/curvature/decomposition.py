"""What makes each layer's alpha: slopes of factor eigenvalues, alignments and gap."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from spectral_laws.palette import FAINT
from spectral_laws.plotting.curvature.layer_panels import layer_panels, layers_by_model
from spectral_laws.plotting.curvature.panels import (
    fitted,
    main_rows,
    reference,
    some_fits,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import SMALL, styled, widened
from spectral_laws.plotting.tables import plural, seed_count, shorten, summarise_seeds

PARTS = ("beta", "phi", "chi")
_COLORS = {
    "beta": "#88ccee",
    "phi": "#999933",
    "chi": "#aa4499",
}  # no family's, alpha shows on them
_LABELS = {
    "beta": r"$\beta$: factor eigenvalues",
    "phi": r"$\varphi$: alignments $\rho_\delta\rho_A$",
    "chi": r"$\chi$: exact / Kronecker",
}
_ROW = 0.135


@styled
def draw(
    decomposition: pd.DataFrame, experiments: pd.DataFrame, *, confidence: float = 0.95
) -> Figure:
    """Slopes alpha = beta + phi + chi of every layer, as stacked bars.

    Slopes on log sigma: beta of the product of the Kronecker factors' eigenvalues, phi of the
    product of the alignments, chi of exact over Kronecker curvature; means over seeds. Positive
    parts are stacked to the right of zero, negative ones to the left; alpha, the point, is their
    sum, with Student's interval over seeds.
    """
    rows = main_rows(decomposition, experiments, name="decomposition")
    fits = some_fits(rows, name="decomposition")
    layers = layers_by_model(rows)
    figure, axes = layer_panels(layers, row=_ROW, header=0.85)
    for model, axis in axes.items():
        _draw_model(axis, rows[rows["model"] == model], layers[model], confidence)
    view = _view(fits, confidence)
    for axis in axes.values():
        axis.set_xlim(view)
        axis.xaxis.set_major_locator(MultipleLocator(1))
    figure.supxlabel(
        "slope on log $\\sigma$\nlargest error of "
        + rf"$\alpha=\beta+\varphi+\chi$: {_power(fits['identity_gap'].abs().max())}"
        + "\nlargest relative error of "
        + r"$h_\mathrm{Kron}=\rho_\delta\,\rho_A\,\lambda_\delta\,\lambda_A$: "
        + _power(rows["kronecker_gap"].abs().max()),
        fontsize=7,
    )
    handles: list[Patch | Line2D] = [
        Patch(color=_COLORS[part], label=_LABELS[part]) for part in PARTS
    ]
    handles += [
        Line2D([], [], color="black", marker="o", markersize=2.4, linestyle="none",
               label=r"$\alpha$, interval over seeds"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=2 + 2 * (len(axes) > 2))
    return figure


def _view(fits: pd.DataFrame, confidence: float) -> tuple[float, float]:
    """Limits that hold all bars; intervals of alpha as far as they do not dwarf them."""
    means = fits.groupby(["model", "layer"])[list(PARTS)].mean()
    bars = [0.0, 2.0, *means.clip(lower=0).sum(axis=1), *means.clip(upper=0).sum(axis=1)]
    alpha = summarise_seeds(fits, ["model", "layer"], "alpha", confidence=confidence)
    return widened([*bars, *alpha["centre"]], [*bars, *alpha["low"], *alpha["high"]])


def _power(number: float) -> str:
    """'2e-10' as a formula."""
    if not number > 0:
        return f"{number:g}"
    digit, power = f"{number:.0e}".split("e")
    return rf"${digit}\times 10^{{{int(power)}}}$"


def _draw_model(axis: Axes, rows: pd.DataFrame, layers: list[str], confidence: float) -> None:
    place = {layer: i for i, layer in enumerate(layers)}
    reference(axis, 1, 2, horizontal=False)
    axis.axvline(0, color=FAINT, linewidth=0.5, zorder=1)
    fits = fitted(rows)
    means = fits.groupby("layer")[list(PARTS)].mean()
    y = np.array([place[layer] for layer in means.index])
    right, left = np.zeros(len(means)), np.zeros(len(means))
    for part in PARTS:
        value = means[part].to_numpy(dtype=np.float64)
        start = np.where(value >= 0, right, left)
        axis.barh(y, value, left=start, height=0.72, color=_COLORS[part], linewidth=0, zorder=2)
        right, left = right + np.maximum(value, 0), left + np.minimum(value, 0)
    if not fits.empty:
        alpha = summarise_seeds(fits, ["layer"], "alpha", confidence=confidence)
        axis.errorbar(
            alpha["centre"], [place[layer] for layer in alpha["layer"]], xerr=bar_lengths(alpha),
            linestyle="none", marker="o", markersize=2.2, markeredgewidth=0, color="black",
            elinewidth=0.6, capsize=0, zorder=3,
        )  # fmt: skip
    for layer in [name for name in layers if name not in means.index]:
        axis.text(0.02, place[layer], "no fit", transform=axis.get_yaxis_transform(), va="center",
                  fontsize=SMALL, color="0.35")  # fmt: skip
    model = shorten(str(rows["model"].iloc[0]))
    axis.set_title(f"{model}: {plural(len(layers), 'layer')}, {seed_count(rows)}")
