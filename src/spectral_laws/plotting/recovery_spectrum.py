"""Spectrum of the moment matrix, with the edges that theory predicts for its bulk."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import DataError
from spectral_laws.plotting.style import COLUMN_WIDTH, MEASURED, OUTLIER, THEORY, styled
from spectral_laws.plotting.tables import require, seed_count, study_name

_COLUMNS = (
    "study", "degree", "dimension", "feature_dimension", "n_directions", "gamma", "seed",
    "sample_size", "eigenvalue", "mass", "edge_low", "edge_high",
)  # fmt: skip


@styled
def draw_recovery_spectrum(spectrum: pd.DataFrame) -> Figure:
    """Density of the eigenvalues of C = mean of (y - ybar)(F F^T - I), logarithmic in density.

    Inside the predicted bulk edges a histogram weighted by spectral mass, average over seeds;
    outside, one point per eigenvalue, at the height one such eigenvalue has in a bin.

    Args:
        spectrum: table of ``compute_spectrum``; one study, dimension and sample size.

    Raises:
        DataError: if a column is missing, there is more than one matrix per seed, or no
            eigenvalue lies inside the edges.
        NumericalError: if an eigenvalue is NaN or infinite.
    """
    require(spectrum, _COLUMNS, name="spectrum")
    if len(spectrum[["study", "dimension", "sample_size"]].drop_duplicates()) > 1:
        raise DataError("spectrum table: more than one study, dimension or sample size")
    eigenvalues = spectrum["eigenvalue"].to_numpy(dtype=np.float64)
    check_finite("eigenvalues of the moment matrix", eigenvalues)
    mass = spectrum["mass"].to_numpy(dtype=np.float64) / spectrum["seed"].nunique()
    low, high = (float(spectrum[name].mean()) for name in ("edge_low", "edge_high"))
    inside = (eigenvalues >= spectrum["edge_low"]) & (eigenvalues <= spectrum["edge_high"])
    if not inside.any():
        raise DataError("spectrum table: no eigenvalue inside the bulk edges")

    figure = Figure(figsize=(COLUMN_WIDTH, 2.5), layout="constrained")
    axis = figure.subplots()
    count = int(np.clip(np.sqrt(inside.sum()), 8, 50))
    bins = np.linspace(eigenvalues[inside].min(), eigenvalues[inside].max(), count + 1)
    heights = mass / (bins[1] - bins[0])
    size = int(spectrum["feature_dimension"].iloc[0])
    single = 1 / (size * spectrum["seed"].nunique() * (bins[1] - bins[0]))
    axis.hist(
        eigenvalues[inside],
        bins.tolist(),
        weights=heights[inside],
        color=MEASURED,
        alpha=0.6,
        edgecolor="none",
        label="bulk",
        histtype="stepfilled",
    )
    outside = eigenvalues[~inside]
    if outside.size:
        # Only a whole spectrum can be counted: quadrature nodes come in copies and fractions.
        whole = np.allclose(mass * spectrum["seed"].nunique() * size, 1)
        label = "outside the edges" + (f": {outside.size}" if whole else "")
        axis.vlines(outside, single / 3, single, color=OUTLIER, linewidth=0.7)
        axis.plot(outside, np.full(outside.size, single), "o", color=OUTLIER, label=label)
    axis.axvline(low, color=THEORY, linestyle=(0, (4, 2)), linewidth=0.8, label="predicted edges")
    axis.axvline(high, color=THEORY, linestyle=(0, (4, 2)), linewidth=0.8)
    axis.set(
        yscale="log",
        xlabel=r"eigenvalue of $C$ (units of $y$)",
        ylabel=r"spectral density (1 / units of $y$)",
    )
    axis.set_ylim(bottom=single / 3)
    first = spectrum.iloc[0]
    axis.set_title(
        rf"{study_name(first['study'])}$q$ = {first['degree']}, $d$ = {first['dimension']}, "
        rf"$\gamma$ = {first['gamma']:g}, $d_1$ = {first['n_directions']}, {seed_count(spectrum)}"
        "\n"
        rf"$n$ = {first['sample_size']:,}, $D$ = {first['feature_dimension']:,}",
        loc="left",
    )
    figure.legend(loc="outside lower center", ncols=3)
    return figure
