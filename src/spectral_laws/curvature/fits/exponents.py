"""The exponents alpha, gamma and s of every layer, with intervals, from measured spectra."""

import math

import numpy as np
import pandas as pd

from spectral_laws.curvature.fits.layer_tables import (
    EXACT,
    SIGMA,
    MeasuredLayer,
    SlopeBootstrap,
    Vector,
    count_layers,
    measured_layers,
    require_columns,
    require_entries,
)
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound
from spectral_laws.fitting.rank_models import compare_rank_models
from spectral_laws.progress import track
from spectral_laws.tables.schemas import load_schema

EXPONENTS = ("alpha", "gamma", "s")
_KEY = ("model", "seed", "epoch", "layer_index", "layer")
_ALSO = ("architecture", "final", "kind", "role", "n_below_rank")


def fit_exponents(
    spectra: pd.DataFrame, *, top_k: int, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Fit the three exponents of every measured layer, at every epoch it was measured.

    Of the leading ``top_k`` directions measured on the whole batch, on the entries with h_k > 0 and
    sigma_k > 0, all three by least squares in logarithms: alpha is the slope of log h_k on log
    sigma_k, gamma minus the slope of log sigma_k on log k, s minus the slope of log h_k on log k; k
    is the rank of the singular value, whatever was left out. The author's files fit s to the
    positive curvatures sorted in decreasing order, against their own rank: that is ``s_sorted``.
    Transfer errors are |s - alpha gamma| / |s|, with s and with ``s_sorted``. The participation
    ratio is that of the positive curvatures, its bound that of k^-(alpha gamma). Rank models are of
    all ``top_k`` singular values, whatever the curvatures are. Intervals are of resampled pairs.
    Rows are in order of model, seed, epoch and depth; ``reason`` counts the usable entries among
    all ``n_directions``.

    Raises:
        DataError: if a column is missing, or a layer's index is not 1, 2, ..., K.
        NumericalError: if a singular value or curvature is NaN or infinite.

    Source: curvature paper, measurement protocol, spectral transfer, experiments 3 and 6.
    """
    require_columns(spectra, ("part",), name="spectra")
    whole = spectra[spectra["part"] == "whole"]
    require_columns(whole, (*_KEY, *_ALSO), name="spectra")
    bootstrap = SlopeBootstrap(confidence, resamples, seed)
    layers = measured_layers(whole, by=_KEY, also=_ALSO)
    total = count_layers(whole, by=_KEY)
    records = [
        _layer_record(layer, top_k, bootstrap)
        for layer in track(layers, total=total, label="layers")
    ]
    return load_schema("curvature/exponents").frame(records)


def _layer_record(layer: MeasuredLayer, top_k: int, bootstrap: SlopeBootstrap) -> dict[str, object]:
    """One row of the table: who the layer is, what was counted, and its fits."""
    k, sigma, h = (layer.values(name)[:top_k] for name in ("index", SIGMA, EXACT))
    asked = len(layer.rows) + int(str(layer.record["n_below_rank"]))
    record = layer.record | {
        "n_directions": k.size,
        "n_used": layer.n_usable(top_k),
        "n_nonpositive": int(np.count_nonzero(h <= 0)),
        "n_below_rank": min(top_k, asked) - k.size,
    }
    record |= _rank_model(sigma)
    stream = (*layer.path, "epoch", int(str(layer.record["epoch"])))
    try:
        layer.require_gradient()
        fits = _exponents(k, sigma, h, stream, bootstrap)
        fits |= _concentration(sigma, h, fits)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    return record | {"status": "fit", "reason": ""} | fits


def _rank_model(sigma: Vector) -> dict[str, object]:
    """The rank model with its criteria, which needs no curvature; missing if sigma is too short."""
    try:
        models = compare_rank_models(sigma)
    except NoFitError:  # fewer than 5 directions: the exponents' reason counts them
        return {"rank_model": None}
    return {"rank_model": models.best} | {f"bic_{name}": bic for name, bic in models.bic.items()}


def _exponents(
    k: Vector, sigma: Vector, h: Vector, stream: tuple[str | int, ...], bootstrap: SlopeBootstrap
) -> dict[str, float]:
    """Value, interval, standard error and R^2 of the three exponents, on the same entries."""
    used = (h > 0) & (sigma > 0)
    require_entries(used, "h > 0 and sigma > 0")
    axes = {"alpha": (sigma, h, 1), "gamma": (k, sigma, -1), "s": (k, h, -1)}
    values: dict[str, float] = {}
    for name, (x, y, sign) in axes.items():
        fit, slope = bootstrap.fit(x[used], y[used], "exponents", *stream, name)
        low, high = sorted((sign * slope.low, sign * slope.high))
        values |= {
            name: sign * fit.slope,
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_stderr": fit.stderr,
            f"{name}_r2": fit.r2,
        }
    return values


def _concentration(sigma: Vector, h: Vector, fits: dict[str, float]) -> dict[str, float]:
    """Spectral transfer with both definitions of s, and the participation ratio."""
    kept = np.sort(h[(h > 0) & (sigma > 0)])[::-1]
    s_sorted = -fit_loglog(np.arange(1, kept.size + 1), kept).slope
    product = fits["alpha"] * fits["gamma"]
    bound = participation_ratio_bound(product)
    return {
        "transfer_error": _relative_error(fits["s"], product),
        "s_sorted": s_sorted,
        "transfer_error_sorted": _relative_error(s_sorted, product),
        "participation_ratio": participation_ratio(kept),
        "participation_bound": bound if math.isfinite(bound) else math.nan,
    }


def _relative_error(s: float, product: float) -> float:
    if s == 0:
        raise NoFitError("the curvatures do not change with rank (s = 0); no transfer error")
    return abs(s - product) / abs(s)
