"""How alpha depends on which singular directions enter the fit."""

import numpy as np
import pandas as pd

from spectral_laws.curvature.fits.layer_tables import (
    EXACT,
    SIGMA,
    MeasuredLayer,
    SlopeBootstrap,
    count_layers,
    final_networks,
    measured_layers,
    require_entries,
)
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.tables.schemas import load_schema

_LEADING = (5, 10)


def fit_windows(
    spectra: pd.DataFrame, *, top_k: int, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Fit alpha over windows of the singular directions of every layer.

    Windows are the leading 5 and 10 directions (``top5``, ``top10``) where that many were measured,
    the leading ``top_k`` that the exponents are fitted to (``top_k``), all measured ones where
    there are more (``full``), and the quarters of all measured ones in order of rank (``q1``
    leading, ..., ``q4``), the first ones a direction longer where they cannot be equal. A layer
    whose gradient is zero has the one window ``top_k``, from 1 to 0, without a fit.

    Source: curvature paper, measurement protocol (top-k); quartiles and full spectrum are ours.
    """
    final = final_networks(spectra)
    bootstrap = SlopeBootstrap(confidence, resamples, seed)
    layers = track(measured_layers(final), total=count_layers(final), label="layers")
    records = [
        _window_record(layer, window, first, last, bootstrap)
        for layer in layers
        for window, (first, last) in window_ranges(len(layer.rows), top_k=top_k).items()
    ]
    return load_schema("curvature/windows").frame(records)


def window_ranges(n_measured: int, *, top_k: int) -> dict[str, tuple[int, int]]:
    """First and last index of every window of a layer with so many measured directions."""
    ranges = {f"top{size}": (1, size) for size in _LEADING if size <= n_measured}
    ranges["top_k"] = (1, min(top_k, n_measured))
    if n_measured > top_k:
        ranges["full"] = (1, n_measured)
    quarters = np.array_split(np.arange(1, n_measured + 1), 4)
    for number, quarter in enumerate(quarters, start=1):
        if quarter.size:
            ranges[f"q{number}"] = (int(quarter[0]), int(quarter[-1]))
    return ranges


def _window_record(
    layer: MeasuredLayer, window: str, first: int, last: int, bootstrap: SlopeBootstrap
) -> dict[str, object]:
    sigma, h = (layer.values(name)[first - 1 : last] for name in (SIGMA, EXACT))
    used = (sigma > 0) & (h > 0)
    record = layer.record | {"window": window, "first": first, "last": last}
    record |= {
        "n_used": int(np.count_nonzero(used)),
        "n_dropped": int(np.count_nonzero(~used)),
        "n_nonpositive": int(np.count_nonzero(h <= 0)),
    }
    try:
        layer.require_gradient()
        require_entries(used, "h > 0 and sigma > 0")
        fit, slope = bootstrap.fit(sigma, h, "windows", *layer.path, window)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    return record | {
        "alpha": fit.slope,
        "alpha_low": slope.low,
        "alpha_high": slope.high,
        "alpha_r2": fit.r2,
        "status": "fit",
        "reason": "",
    }
