"""Measurement of the claim on finite differences, the negative control: B4."""

from typing import Literal

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.layers import layer_median
from spectral_laws.claims.curvature.selections import LAYER, having
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.loglog import fit_loglog

Curvature = Literal["finite_difference", "directional_curvature"]


def measure_difference_fit(
    tables: ClaimTables, resampling: Resampling, *, column: Curvature = "finite_difference"
) -> Measurement:
    """B4: median over layers of R^2 of log h on log sigma, h from finite differences.

    The reason holds the share of negative h. Only positive ones can be fitted, so R^2 is that of
    what is left, and layers with too few are counted.

    Raises:
        NoFitError: if no layer has enough positive entries, or a network was trained too few times.
    """
    table = tables.require("finite_differences")
    layers = pd.DataFrame(
        [
            {**dict(zip(LAYER, key, strict=True)), "r2": _r2(layer, column)}
            for key, layer in table.groupby(LAYER)
        ]
    )
    negative = float((table[column] <= 0).mean())
    rows, text = having(layers, "r2", "layers")
    steps = ", ".join(f"{step:g}" for step in sorted(table["step"].unique()))
    reason = (
        f"{text}; {negative:.0%} of {len(table)} curvatures are zero or negative and not in the "
        f"fits; step {steps}"
    )
    return layer_median(rows, "r2", resampling, reason)


def _r2(layer: pd.DataFrame, column: Curvature) -> float:
    """R^2 of the power law, missing where too few entries are positive."""
    try:
        return fit_loglog(layer["singular_value"], layer[column]).r2
    except NoFitError:
        return float(np.nan)
