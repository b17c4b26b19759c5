"""Spectrum of the moment matrix, with the edges that theory predicts for its bulk."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import DataError
from spectral_laws.palette import MEASURED, OUTLIER, THEORY
from spectral_laws.plotting.style import COLUMN_WIDTH, styled
from spectral_laws.plotting.tables import seed_count, study_name


@styled
def draw(spectrum: pd.DataFrame) -> Figure:
    """Density of the eigenvalues of C = mean of (y - ybar)(F F^T - I), logarithmic in density.

    Points are the d1 eigenvalues of largest magnitude, those that the algorithm takes, at the
    height that one eigenvalue has in a bin; the histogram holds all others, weighted by spectral
    mass, average over seeds. The line is the density of the bulk for Gaussian features, dashed
    lines its edges; the title says how much of the spectrum lies outside of them.
    """
    if len(spectrum[["study", "dimension", "sample_size"]].drop_duplicates()) > 1:
        raise DataError("spectrum table: more than one study, dimension or sample size")
    eigenvalues = spectrum["eigenvalue"].to_numpy(dtype=np.float64)
    check_finite("eigenvalues of the moment matrix", eigenvalues)
    mass = spectrum["mass"].to_numpy(dtype=np.float64) / spectrum["seed"].nunique()
    low, high = (float(spectrum[name].mean()) for name in ("edge_low", "edge_high"))
    outside = float(mass[(eigenvalues < low) | (eigenvalues > high)].sum())
    leading = _leading(spectrum)
    rest = eigenvalues[~leading]
    if rest.size < 2 or np.ptp(rest) == 0:
        raise DataError("spectrum table: no eigenvalues beside the leading ones")

    figure = Figure(figsize=(COLUMN_WIDTH, 2.7), layout="constrained")
    axis = figure.subplots()
    bins = np.linspace(rest.min(), rest.max(), int(np.clip(np.sqrt(rest.size), 8, 50)) + 1)
    size = int(spectrum["feature_dimension"].iloc[0])
    single = 1 / (size * spectrum["seed"].nunique() * (bins[1] - bins[0]))
    axis.hist(
        rest,
        bins.tolist(),
        weights=mass[~leading] / (bins[1] - bins[0]),
        color=MEASURED,
        alpha=0.6,
        edgecolor="none",
        label="other eigenvalues",
        histtype="stepfilled",
    )
    taken = eigenvalues[leading]
    axis.vlines(taken, single / 3, single, color=OUTLIER, linewidth=0.7)
    axis.plot(
        taken,
        np.full(taken.size, single),
        "o",
        color=OUTLIER,
        label=r"the $d_1$ of largest magnitude",
    )
    inside = spectrum[spectrum["density"] > 0].sort_values("eigenvalue")
    axis.plot(
        inside["eigenvalue"], inside["density"], color=THEORY, linewidth=0.9,
        label="Gaussian bulk",
    )  # fmt: skip
    axis.axvline(low, color=THEORY, linestyle=(0, (4, 2)), linewidth=0.8, label="Gaussian edges")
    axis.axvline(high, color=THEORY, linestyle=(0, (4, 2)), linewidth=0.8)
    axis.set(
        yscale="log",
        xlabel=r"eigenvalue of $C$ (units of $y$)",
        ylabel=r"spectral density (1 / units of $y$)",
    )
    highest = max(float(axis.dataLim.y1), float(spectrum["density"].max()))
    axis.set_ylim(single / 3, 2 * highest)
    first = spectrum.iloc[0]
    axis.set_title(
        rf"{study_name(first['study'])}$q$ = {first['degree']}, $d$ = {first['dimension']}, "
        rf"$\gamma$ = {first['gamma']:g}, $d_1$ = {first['n_directions']}, {seed_count(spectrum)}"
        "\n"
        rf"$n$ = {first['sample_size']:,}, $D$ = {first['feature_dimension']:,}; "
        f"{100 * outside:.2g} % of mass outside edges"
    )
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _leading(spectrum: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows of the d1 largest |eigenvalue| of each seed: as many as hold the mass d1 / D."""
    share = int(spectrum["n_directions"].iloc[0]) / int(spectrum["feature_dimension"].iloc[0])
    ordered = spectrum.assign(size=spectrum["eigenvalue"].abs()).sort_values(
        ["seed", "size"], ascending=[True, False], kind="stable"
    )
    before = ordered.groupby("seed")["mass"].cumsum() - ordered["mass"]
    return np.asarray((before < share * (1 - 1e-9)).reindex(spectrum.index), dtype=np.bool_)
