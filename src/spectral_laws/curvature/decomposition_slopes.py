"""Where a layer's alpha comes from: factor eigenvalues, alignments and the Kronecker gap."""

import numpy as np
import pandas as pd

from spectral_laws.curvature.ladder_slopes import measured_values
from spectral_laws.curvature.layer_tables import (
    EXACT,
    LAYER,
    SIGMA,
    MeasuredLayer,
    SlopeBootstrap,
    Vector,
    count_layers,
    final_networks,
    layer_table,
    measured_layers,
    require_columns,
)
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track

FACTORS = ("rho_delta", "rho_a", "lambda_delta", "lambda_a")
SLOPES = ("alpha", "beta_delta", "beta_a", "beta", "phi_delta", "phi_a", "phi", "chi")

_SLOPE_COLUMNS = tuple(f"{name}{part}" for name in SLOPES for part in ("", "_low", "_high"))
_NUMBERS = (*_SLOPE_COLUMNS, "identity_gap", "kronecker_gap", "r_kronecker")
_COLUMNS = (*LAYER, "n_used", "n_dropped", *_NUMBERS, "status", "reason")

NULLABLE_DECOMPOSITION = _NUMBERS
"""Columns that are missing where status is 'no fit' (``r_kronecker`` also where the Kronecker
curvatures are all equal)."""


def fit_decomposition(
    spectra: pd.DataFrame, *, top_k: int, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Split every layer's alpha into slopes of factor eigenvalues, alignments and gap.

    With h_k the exact curvature, K_k the Kronecker one, K_k = rho_delta rho_a lambda_delta lambda_a
    (identity), all slopes on log sigma_k over the same entries (h_k, sigma_k, K_k and the four
    factors positive): alpha of log h, beta_delta and beta_a of log lambda, beta of their product,
    phi_delta and phi_a of log rho, phi of their product, chi of log(h / K). Least squares is linear
    in the ordinate, so alpha = beta + phi + chi to rounding.

    Args:
        spectra: as :func:`spectral_laws.curvature.ladder_slopes.fit_ladder`.
        top_k: directions that enter.
        confidence: of the bootstrap intervals (pairs are resampled).
        resamples: bootstrap resamples.
        seed: root seed of the resampling.

    Returns:
        One row per (model, seed, layer): every slope with its interval,
        ``identity_gap`` = alpha - (beta + phi + chi), ``kronecker_gap`` = largest
        |K_k - rho rho lambda lambda| / K_k, ``r_kronecker`` = Pearson correlation of log K_k and
        log sigma_k^2. Layers without factors, or with fewer than 5 entries, have ``status``
        'no fit', a ``reason``, and :data:`NULLABLE_DECOMPOSITION` missing.

    Raises:
        DataError: if a column is missing.
        NumericalError: if a factor is infinite.

    Source: curvature paper, theorem 1 and experiment 9.
    """
    final = final_networks(spectra)
    require_columns(final, ("kronecker", *FACTORS), name="spectra")
    bootstrap = SlopeBootstrap(confidence, resamples, seed)
    layers = track(measured_layers(final), total=count_layers(final), label="decompositions")
    records = [_layer_record(layer, top_k, bootstrap) for layer in layers]
    return layer_table(records, _COLUMNS, _NUMBERS)


def _layer_record(layer: MeasuredLayer, top_k: int, bootstrap: SlopeBootstrap) -> dict[str, object]:
    sigma, exact = (layer.values(name)[:top_k] for name in (SIGMA, EXACT))
    record = layer.record | {"n_used": 0, "n_dropped": sigma.size}
    try:
        columns = {
            name: measured_values(layer, name, top_k) for name in ("kronecker", *FACTORS)
        } | {"sigma": sigma, "exact": exact}
        used = np.all([values > 0 for values in columns.values()], axis=0)
        n_used = int(np.count_nonzero(used))
        record |= {"n_used": n_used, "n_dropped": sigma.size - n_used}
        kept = {name: values[used] for name, values in columns.items()}
        fits = _slopes(kept, layer, bootstrap)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    parts = fits["beta"] + fits["phi"] + fits["chi"]
    return (
        record
        | fits
        | _kronecker(kept)
        | {
            "identity_gap": fits["alpha"] - parts,
            "status": "fit",
            "reason": "",
        }
    )


def _slopes(
    kept: dict[str, Vector], layer: MeasuredLayer, bootstrap: SlopeBootstrap
) -> dict[str, float]:
    """Every slope of :data:`SLOPES` with its interval."""
    ordinates = {
        "alpha": kept["exact"],
        "beta_delta": kept["lambda_delta"],
        "beta_a": kept["lambda_a"],
        "beta": kept["lambda_delta"] * kept["lambda_a"],
        "phi_delta": kept["rho_delta"],
        "phi_a": kept["rho_a"],
        "phi": kept["rho_delta"] * kept["rho_a"],
        "chi": kept["exact"] / kept["kronecker"],
    }
    values: dict[str, float] = {}
    for name, ordinate in ordinates.items():
        fit, slope = bootstrap.fit(kept["sigma"], ordinate, "decomposition", *layer.path, name)
        values |= {name: fit.slope, f"{name}_low": slope.low, f"{name}_high": slope.high}
    return values


def _kronecker(kept: dict[str, Vector]) -> dict[str, float | None]:
    """How well the factors multiply to the Kronecker curvature, and it follows sigma^2."""
    product = np.prod([kept[name] for name in FACTORS], axis=0)
    log_kronecker = np.log(kept["kronecker"])
    constant = np.ptp(log_kronecker) == 0
    correlation = np.corrcoef(log_kronecker, 2 * np.log(kept["sigma"]))[0, 1] if not constant else 0
    return {
        "kronecker_gap": float(np.max(np.abs(kept["kronecker"] - product) / kept["kronecker"])),
        "r_kronecker": None if constant else float(correlation),
    }
