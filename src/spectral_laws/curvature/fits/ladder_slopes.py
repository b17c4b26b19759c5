"""Ratios of neighbouring curvatures of the ladder, and how they change with sigma."""

import numpy as np
import pandas as pd

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.fits.layer_tables import (
    EXACT,
    SIGMA,
    MeasuredLayer,
    SlopeBootstrap,
    Vector,
    count_layers,
    final_networks,
    measured_layers,
    require_columns,
    require_entries,
)
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.tables.schemas import load_schema

RATIOS: dict[str, tuple[str, str]] = {
    "exact/gauss_newton": (EXACT, "gauss_newton"),
    "gauss_newton/fisher": ("gauss_newton", "fisher"),
    "fisher/positions": ("fisher", "positions"),
    "positions/kronecker": ("positions", "kronecker"),
    "exact/kronecker": (EXACT, "kronecker"),
    "gauss_newton/positions_true": ("gauss_newton", "positions_true"),
    "positions_true/kronecker_true": ("positions_true", "kronecker_true"),
    "exact/kronecker_true": (EXACT, "kronecker_true"),
}
"""Columns of the spectra table whose quotient each ratio is."""


def fit_ladder(
    spectra: pd.DataFrame, *, top_k: int, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Median and log-slope in sigma of every ratio of the curvature ladder.

    Per layer and ratio r_k of :data:`RATIOS`, on the leading ``top_k`` entries where numerator,
    denominator and sigma_k are positive: the median of r_k and the least-squares slope of log r_k
    on log sigma_k. A slope of zero means that the approximation is off by a constant factor alone,
    which leaves alpha as it is.

    Source: curvature paper, gap between exact and Kronecker curvature; see the curvature ladder.
    """
    final = final_networks(spectra)
    require_columns(final, [name for pair in RATIOS.values() for name in pair], name="spectra")
    bootstrap = SlopeBootstrap(confidence, resamples, seed)
    layers = track(measured_layers(final), total=count_layers(final), label="ladders")
    records = [
        _ratio_record(layer, ratio, top_k, bootstrap) for layer in layers for ratio in RATIOS
    ]
    return load_schema("curvature/ladder").frame(records)


def measured_values(layer: MeasuredLayer, column: str, top_k: int) -> Vector:
    """A nullable quantity of the layer's leading directions.

    It is NaN in directions that have none (an alignment, where k exceeds the rank of a factor).
    """
    values = layer.values(column)[:top_k]
    absent = np.isnan(values)
    if absent.all():
        raise NoFitError(f"{column} was not measured for this layer")
    check_finite(f"{column} of {layer.name}", values[~absent])
    return values


def _ratio_record(
    layer: MeasuredLayer, ratio: str, top_k: int, bootstrap: SlopeBootstrap
) -> dict[str, object]:
    """One row of the table."""
    sigma = layer.values(SIGMA)[:top_k]
    record = layer.record | {"ratio": ratio, "n_used": 0, "n_dropped": sigma.size}
    try:
        layer.require_gradient()
        above, below = (measured_values(layer, column, top_k) for column in RATIOS[ratio])
        used = (above > 0) & (below > 0) & (sigma > 0)
        n_used = int(np.count_nonzero(used))
        record |= {"n_used": n_used, "n_dropped": sigma.size - n_used}
        require_entries(used, "both curvatures and sigma > 0")
        quotient = above[used] / below[used]
        fit, slope = bootstrap.fit(sigma[used], quotient, "ladder", *layer.path, ratio)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    return record | {
        "median": float(np.median(quotient)),
        "slope": fit.slope,
        "slope_low": slope.low,
        "slope_high": slope.high,
        "slope_r2": fit.r2,
        "status": "fit",
        "reason": "",
    }
