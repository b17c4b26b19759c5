"""What each method makes of the singular values of a gradient: update spectra T(sigma)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.palette import THEORY
from spectral_laws.plotting.curvature.panels import DASHED
from spectral_laws.plotting.optimizers.panels import Look, looks
from spectral_laws.plotting.style import TEXT_WIDTH, label_decades, minus, styled
from spectral_laws.plotting.tables import plural, shorten

DAMPING = 0.1
"""Of the theoretical spectra, in units of sigma_1^alpha."""
ALPHAS = {1.0: (0, (1, 1.2)), 2.0: (0, (4, 1.5))}
"""Exponents of the theoretical spectra, and their dashes."""

_MANY = 40  # directions, whose markers are drawn smaller
Vector = NDArray[np.float64]


@styled
def draw(responses: pd.DataFrame) -> Figure:
    """Update along each singular direction of a gradient against its singular value, per layer.

    Both axes are shares of a method's own largest |T_k| and of sigma_1, so shapes are compared and
    not sizes. Both are logarithmic: |T_k| is drawn, with a hollow marker where the update goes
    against the gradient. Thin lines: Spectral Newton's T = sigma / (sigma^alpha + 0.1). The legend
    gives the part of an update's squared norm that lies on the gradient's own directions: the rest
    is not in the figure.
    """
    styles = looks(responses["method"])
    panels = [
        (key, responses[(responses["race"] == key[0]) & (responses["layer"] == key[1])])
        for key in dict.fromkeys(zip(responses["race"], responses["layer"], strict=True))
    ]
    figure = Figure(layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    lines = 0
    for axis, ((race, layer), rows) in zip(axes, panels, strict=True):
        handles = _draw_layer(axis, rows, styles)
        axis.set_title(f"{shorten(str(race))}: {_describe(str(layer), rows)}")
        axis.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5),
                    title="method, and its share on the\ngradient's directions",
                    alignment="left")  # fmt: skip
        lines = max(lines, sum(1 + str(handle.get_label()).count("\n") for handle in handles))
    # Panels are as high as the longest legend, with its title of two lines.
    figure.set_size_inches(TEXT_WIDTH, len(panels) * max(2.3, 0.4 + 0.135 * (lines + 2)))
    return figure


def relative_spectrum(rows: pd.DataFrame) -> tuple[Vector, Vector]:
    """sigma_k / sigma_1 and T_k / max |T| of one method and layer; T is 0 where all of it is."""
    ordered = rows.sort_values("k")
    sigma = ordered["sigma"].to_numpy(dtype=np.float64)
    response = ordered["response"].to_numpy(dtype=np.float64)
    return sigma / sigma.max(), response / (np.abs(response).max() or 1.0)


def _draw_layer(axis: Axes, rows: pd.DataFrame, styles: dict[str, Look]) -> list[Line2D]:
    """All spectra of one layer; their legend entries."""
    axis.set(xscale="log", yscale="log")
    handles: list[Line2D] = []
    drawn: dict[str, Vector] = {}
    unseen = 0
    for order, (method, look) in enumerate(styles.items()):
        mine = rows[rows["method"] == method]
        if mine.empty:
            continue
        sigma, response = relative_spectrum(mine)
        unseen += int((response == 0).sum())
        twin = next((name for name, other in drawn.items() if _alike(response, other)), None)
        drawn[look.name] = response
        share = 100 * float(mine["diagonal_share"].iloc[0])
        text = f"{look.name}: " + (f"{share:.3g} %" if response.any() else "no update")
        _draw_spectrum(
            axis, sigma, response, look, zorder=2 + 0.01 * order, dashed=twin is not None
        )
        handles.append(
            Line2D([], [], color=look.color, marker=None if twin else look.marker, markersize=2.8,
                   linestyle=DASHED if twin else "-",
                   label=f"{text}\n(on the line of {twin})" if twin else text)
        )  # fmt: skip
    handles += _draw_theory(axis, rows)
    handles.append(Line2D([], [], color="0.3", marker="o", markerfacecolor="white", markersize=2.8,
                          linestyle="none", label="against the gradient (T < 0)"))  # fmt: skip
    if unseen:
        note = f"not shown: {plural(unseen, 'value')} T = 0"
        handles.append(Line2D([], [], linestyle="none", label=note))
    axis.set_xlabel(r"singular value of the gradient, $\sigma_k/\sigma_1$")
    axis.set_ylabel(r"update, $|T_k|\,/\,\max_j |T_j|$")
    label_decades(axis)
    return handles


def _draw_spectrum(
    axis: Axes, sigma: Vector, response: Vector, look: Look, *, zorder: float, dashed: bool
) -> None:
    """A line with markers, hollow where T < 0; dashes alone if another method's is below it."""
    seen = response != 0
    sigma, size, against = sigma[seen], np.abs(response[seen]), response[seen] < 0
    axis.plot(sigma, size, color=look.color, linewidth=1.2 if dashed else 0.6,
              linestyle=DASHED if dashed else "-", alpha=0.8, zorder=zorder)  # fmt: skip
    if dashed:
        return
    small = 2.6 if sigma.size <= _MANY else 1.6
    for part, hollow in ((~against, False), (against, True)):
        axis.plot(sigma[part], size[part], look.marker, color=look.color, markersize=small,
                  markerfacecolor="white" if hollow else look.color, markeredgewidth=0.4,
                  alpha=0.8, zorder=zorder + 0.5)  # fmt: skip


def _alike(one: Vector, other: Vector) -> bool:
    """Whether two spectra cannot be told apart in the figure."""
    same = one.shape == other.shape and np.allclose(one, other, rtol=1e-2, atol=0)
    return bool(same and one.any())


def _draw_theory(axis: Axes, rows: pd.DataFrame) -> list[Line2D]:
    """T(sigma) of Spectral Newton, as a share of its largest value on the layer's spectrum."""
    measured = np.unique(rows["sigma"].to_numpy(dtype=np.float64) / rows["sigma"].max())
    sigma = np.union1d(measured, np.geomspace(measured.min(), 1.0, 200))
    handles = []
    for alpha, dash in ALPHAS.items():
        largest = (measured / (measured**alpha + DAMPING)).max()
        (line,) = axis.plot(sigma, sigma / (sigma**alpha + DAMPING) / largest, color=THEORY,
                            linewidth=0.7, linestyle=dash, zorder=1.5)  # fmt: skip
        line.set_label(rf"$\sigma/(\sigma^{{{alpha:g}}} + {DAMPING:g})$, $\sigma_1 = 1$")
        handles.append(line)
    return handles


def _describe(layer: str, rows: pd.DataFrame) -> str:
    """'conv1, 64 directions, largest sigma 0.032 (loss / weight)'."""
    count = plural(int(rows["k"].nunique()), "direction")
    largest = minus(f"{rows['sigma'].max():.2g}")
    return rf"{shorten(layer)}, {count}, $\sigma_1$ = {largest} (loss / weight)"
