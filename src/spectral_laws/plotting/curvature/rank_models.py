"""Which law the singular values of a gradient follow in rank, by architecture and role."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from spectral_laws.errors import DataError
from spectral_laws.palette import FAINT, LAWS, ROLE_NAMES, THEORY
from spectral_laws.plotting.curvature.panels import (
    DASHED,
    check_roles,
    describe_layers,
    label_logarithmic,
    main_rows,
    roles_of,
    some_fits,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import SMALL, TEXT_WIDTH, empty_panel, styled
from spectral_laws.plotting.tables import shorten, summarise_seeds

_DASHES = {"lognormal": "-", "power_law": (0, (4, 1.5)), "exponential": (0, (1, 1.2))}
PAPER_SHARE = 0.875
"""Share of layers that are log-normal in the paper: 21 of 24."""


@styled
def draw(
    exponents: pd.DataFrame,
    spectra: pd.DataFrame,
    experiments: pd.DataFrame,
    *,
    top_k: int,
    confidence: float = 0.95,
) -> Figure:
    """Winners by BIC of three laws of log sigma in rank, and one example of each.

    (a), (b) Share of layers and seeds whose smallest BIC each law has, by network and by role; of
    all of them also the log-normal's Student's interval over seeds, and the paper's share.
    (c) to (e) For each law the layer that it wins by the widest margin in BIC: singular values
    against rank with the three least-squares fits of log sigma (power law: linear in log k;
    exponential: linear in k; log-normal in rank: quadratic in log k). They are the extremes.
    """
    rows = check_roles(exponents, name="exponents")
    fits = some_fits(main_rows(rows, experiments, name="exponents"), name="exponents")
    unknown = sorted(set(fits["rank_model"]) - set(LAWS))
    if unknown:
        raise DataError(f"exponents table: unknown rank_model {', '.join(map(str, unknown))}")
    figure = Figure(figsize=(TEXT_WIDTH, 4.9), layout="constrained")
    grid = figure.add_gridspec(2, 6, height_ratios=[1.0, 1.05])
    models, roles = list(dict.fromkeys(fits["model"])), roles_of(fits)
    left, right = figure.add_subplot(grid[0, :3]), figure.add_subplot(grid[0, 3:])
    fits = fits.assign(all="all")
    _draw_shares(left, fits, "model", models, [shorten(str(name), limit=16) for name in models])
    _draw_whole(left, fits, len(models), confidence)
    _draw_shares(right, fits, "role", roles, [ROLE_NAMES[r].replace("\n", " ") for r in roles])
    left.set_title(f"(a) {describe_layers(fits)}")
    right.set_title("(b) by role")
    spectra = spectra[(spectra["part"] == "whole") & (spectra["index"] <= top_k)]
    for i, law in enumerate(LAWS):
        axis = figure.add_subplot(grid[1, 2 * i : 2 * i + 2])
        _draw_example(axis, fits, spectra, law, letter="cde"[i])
        if i == 0:
            axis.set_ylabel(r"$\sigma_k$ (loss / weight)")
    handles: list[Patch | Line2D] = [Patch(color=LAWS[law][1], label=LAWS[law][0]) for law in LAWS]
    handles += [
        Line2D([], [], color="white", marker="o", markeredgecolor="black", linestyle="none",
               label="log-normal, mean and interval over seeds"),
        Line2D([], [], color=THEORY, linestyle=DASHED, linewidth=1.2,
               label=f"paper, log-normal: {PAPER_SHARE:g}"),
        Line2D([], [], color=FAINT, marker="o", linestyle="none", label=r"$\sigma_k$"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _draw_shares(
    axis: Axes, fits: pd.DataFrame, column: str, keys: list[str], names: list[str]
) -> None:
    for y, key in enumerate(keys):
        _draw_bar(axis, y, fits.loc[fits[column] == key, "rank_model"])
    axis.text(1.02, -0.85, "n", va="center", fontsize=SMALL, color="0.35")
    axis.set_yticks(range(len(keys)), names)
    axis.tick_params(axis="y", length=0)
    axis.set(xlim=(0, 1.12), ylim=(len(keys) - 0.5, -1.2), xticks=[0, 0.25, 0.5, 0.75, 1])
    axis.set_xlabel("share of layers and seeds with the smallest BIC")
    axis.spines["bottom"].set_bounds(0, 1)


def _draw_bar(axis: Axes, y: int, winners: pd.Series) -> None:
    left = 0.0
    for law in LAWS:
        share = float((winners == law).mean())
        axis.barh(y, share, left=left, height=0.7, color=LAWS[law][1], linewidth=0)
        left += share
    axis.text(1.02, y, f"{winners.size}", va="center", fontsize=SMALL, color="0.35")


def _draw_whole(axis: Axes, fits: pd.DataFrame, y: int, confidence: float) -> None:
    """A last bar of all networks, with the log-normal's interval and the paper's share."""
    _draw_bar(axis, y, fits["rank_model"])
    won = fits.assign(share=(fits["rank_model"] == "lognormal").astype(float))
    shares = won.groupby(["all", "seed"])["share"].mean().reset_index()
    one = summarise_seeds(shares, ["all"], "share", confidence=confidence, bounds=(0.0, 1.0))
    axis.errorbar(one["centre"], y, xerr=bar_lengths(one), fmt="o", color="white",
                  markeredgecolor="black", ecolor="black", elinewidth=0.8, zorder=4)  # fmt: skip
    ends = [y - 0.45, y + 0.45]
    axis.plot([PAPER_SHARE] * 2, ends, color="white", linewidth=2.4, zorder=3)
    axis.plot([PAPER_SHARE] * 2, ends, color=THEORY, linestyle=DASHED, linewidth=1.2, zorder=3)
    axis.set_yticks(range(y + 1), [*(t.get_text() for t in axis.get_yticklabels()), "all"])
    axis.set_ylim(y + 0.5, -1.2)


def widest_margin(fits: pd.DataFrame, law: str) -> tuple[pd.Series, float] | None:
    """The fit that ``law`` wins by most, and that margin in BIC; None where it wins none."""
    won = fits[fits["rank_model"] == law]
    if won.empty:
        return None
    others = won[[f"bic_{other}" for other in LAWS if other != law]].min(axis=1)
    margin = others - won[f"bic_{law}"]
    place = int(np.argmax(margin.to_numpy()))
    return won.iloc[place], float(margin.iloc[place])


def rank_curves(sigma: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Least-squares fits of log sigma_k at k = 1, 2, ...; only positive entries are fitted.

    Source: curvature paper, experiment 6.
    """
    k = np.arange(1, sigma.size + 1, dtype=np.float64)
    one, log_k, used = np.ones(k.size), np.log(k), sigma > 0
    designs = {
        "lognormal": np.column_stack([one, log_k, log_k**2]),
        "power_law": np.column_stack([one, log_k]),
        "exponential": np.column_stack([one, k]),
    }
    target = np.log(sigma[used])
    return {
        law: np.exp(design @ np.linalg.lstsq(design[used], target, rcond=None)[0])
        for law, design in designs.items()
    }


def _draw_example(
    axis: Axes, fits: pd.DataFrame, spectra: pd.DataFrame, law: str, *, letter: str
) -> None:
    found = widest_margin(fits, law)
    title = f"({letter}) {LAWS[law][0]}"
    if found is None:
        empty_panel(axis, f"No layer is {LAWS[law][0]} by BIC.", title=title)
        return
    fit, margin = found
    keys = ["model", "seed", "epoch", "layer_index"]
    mine = spectra[(spectra[keys] == fit[keys].to_list()).all(axis=1)].sort_values("index")
    if mine.empty:
        raise DataError(f"spectra table: no rows of {fit['model']}, layer {fit['layer']}")
    sigma = mine["singular_value"].to_numpy(dtype=np.float64)
    k = mine["index"].to_numpy(dtype=np.float64)
    axis.plot(k[sigma > 0], sigma[sigma > 0], "o", color=FAINT, markersize=2.8, zorder=3)
    for name, curve in rank_curves(sigma).items():
        axis.plot(k, curve, color=LAWS[name][1], linestyle=_DASHES[name], linewidth=1.1)
    axis.set(xscale="log", yscale="log", xlabel=r"rank $k$")
    label_logarithmic(axis)
    name = f"{shorten(str(fit['model']), limit=10)}, {shorten(str(fit['layer']), limit=20)}"
    axis.set_title(f"{title}, by {margin:.0f} in BIC\n{name}", fontsize=SMALL + 0.5)
