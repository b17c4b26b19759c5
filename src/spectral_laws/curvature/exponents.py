"""The exponents alpha, gamma and s of every layer, with intervals, from measured spectra."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.bootstrap import Interval, bootstrap_slope_interval
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound
from spectral_laws.fitting.rank_models import compare_rank_models
from spectral_laws.progress import track
from spectral_laws.rng import generator

Vector = NDArray[np.float64]
SlopeInterval = Callable[..., Interval]

EXPONENTS = ("alpha", "gamma", "s")
_KEY = ["model", "seed", "layer_index", "layer"]
_DESCRIPTION = ["architecture", "kind", "n_below_rank"]
_SPECTRA_COLUMNS = [
    *_KEY,
    *_DESCRIPTION,
    "index",
    "singular_value",
    "directional_curvature",
]
_FITTED = [
    f"{name}{part}" for name in EXPONENTS for part in ("", "_low", "_high", "_stderr", "_r2")
]
_NUMBERS = [
    *_FITTED,
    "transfer_error",
    "s_sorted",
    "transfer_error_sorted",
    "participation_ratio",
    "participation_bound",
]
_BIC = ["bic_power_law", "bic_exponential", "bic_lognormal"]

NULLABLE = (*_NUMBERS, "rank_model", *_BIC)
"""Columns that are missing where status is 'no fit' (``participation_bound`` also where
alpha gamma <= 1, because the bound is then infinite)."""


def fit_exponents(
    spectra: pd.DataFrame, *, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Fit the three exponents of every measured layer.

    On the entries with h_k > 0 and sigma_k > 0, all three by least squares in logarithms:
    alpha is the slope of log h_k on log sigma_k, gamma minus the slope of log sigma_k on log k,
    s minus the slope of log h_k on log k; k is the rank of the singular value, whatever was left
    out. The author's files fit s to the positive curvatures sorted in decreasing order, against
    their own rank: that is ``s_sorted``. Transfer errors are |s - alpha gamma| / |s|, with s and
    with ``s_sorted``. The participation ratio is that of the positive curvatures, its bound that
    of k^-(alpha gamma). Rank models are of all singular values.

    Args:
        spectra: one row per (model, seed, layer, index k), as measured.
        confidence: of the bootstrap intervals (pairs are resampled).
        resamples: bootstrap resamples.
        seed: root seed of the resampling.

    Returns:
        One row per (model, seed, layer), ordered by model, seed and depth. Where fewer than 5
        entries are usable ``status`` is 'no fit', ``reason`` says why, and the columns
        :data:`NULLABLE` are missing.

    Raises:
        DataError: if a column is missing, or a layer's index is not 1, 2, ..., K.
        NumericalError: if a singular value or curvature is NaN or infinite.

    Source: curvature paper, measurement protocol, spectral transfer, experiments 3 and 6.
    """
    missing = [name for name in _SPECTRA_COLUMNS if name not in spectra.columns]
    if missing:
        raise DataError(f"spectra table: no column {', '.join(missing)}")

    def interval(x: Vector, y: Vector, *path: str | int) -> Interval:
        return bootstrap_slope_interval(
            x,
            y,
            confidence=confidence,
            resamples=resamples,
            generator=generator(seed, "exponents", *path),
        )

    layers = spectra.groupby(_KEY, sort=True)
    records = [
        _layer_record(layer.sort_values("index"), interval)
        for _, layer in track(layers, total=layers.ngroups, label="layers")
    ]
    table = pd.DataFrame(records, columns=_columns())
    return table.astype(dict.fromkeys([*_NUMBERS, *_BIC], "float64"))


def _columns() -> list[str]:
    head = ["model", "architecture", "seed", "layer_index", "layer", "kind"]
    counts = ["n_directions", "n_used", "n_nonpositive", "n_below_rank", "status", "reason"]
    return [*head, *counts, *_NUMBERS, "rank_model", *_BIC]


def _layer_record(layer: pd.DataFrame, interval: SlopeInterval) -> dict[str, object]:
    """One row of the table: who the layer is, what was counted, and its fits."""
    record = {column: layer[column].iloc[0] for column in (*_KEY, *_DESCRIPTION)}
    path = (str(record["model"]), int(record["seed"]), int(record["layer_index"]))
    name = f"{path[0]}, seed {path[1]}, layer {record['layer']}"
    k, sigma, h = (
        layer[column].to_numpy(np.float64)
        for column in ("index", "singular_value", "directional_curvature")
    )
    if not np.array_equal(k, np.arange(1, k.size + 1)):
        raise DataError(f"spectra table: the index of {name} is not 1, 2, ..., {k.size}")
    check_finite(f"singular values of {name}", sigma)
    check_finite(f"directional curvatures of {name}", h)
    record |= {
        "n_directions": k.size,
        "n_used": int(np.count_nonzero((h > 0) & (sigma > 0))),
        "n_nonpositive": int(np.count_nonzero(h <= 0)),
    }
    try:
        fits = _exponents(k, sigma, h, path, interval)
        fits |= _concentration(sigma, h, fits)
        models = compare_rank_models(sigma)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error), "rank_model": None}
    bic = {f"bic_{model}": value for model, value in models.bic.items()}
    return record | {"status": "fit", "reason": "", "rank_model": models.best} | fits | bic


def _exponents(
    k: Vector, sigma: Vector, h: Vector, path: tuple[str, int, int], interval: SlopeInterval
) -> dict[str, float]:
    """Value, interval, standard error and R^2 of the three exponents, on the same entries."""
    used = (h > 0) & (sigma > 0)
    axes = {"alpha": (sigma, h, 1), "gamma": (k, sigma, -1), "s": (k, h, -1)}
    values: dict[str, float] = {}
    for name, (x, y, sign) in axes.items():
        fit = fit_loglog(x[used], y[used])
        slope = interval(x[used], y[used], *path, name)
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
