"""Where a layer's alpha comes from: factor eigenvalues, alignments and the Kronecker gap."""

import numpy as np
import pandas as pd

from spectral_laws.curvature.fits.ladder_slopes import measured_values
from spectral_laws.curvature.fits.layer_tables import (
    EXACT,
    SIGMA,
    Mask,
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

FACTORS = ("rho_delta", "rho_a", "lambda_delta", "lambda_a")
SLOPES = ("alpha", "beta_delta", "beta_a", "beta", "phi_delta", "phi_a", "phi", "chi")


def fit_decomposition(
    spectra: pd.DataFrame, *, top_k: int, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Split every layer's alpha into slopes of factor eigenvalues, alignments and gap.

    With h_k the exact curvature, K_k the Kronecker one, K_k = rho_delta rho_a lambda_delta lambda_a
    (identity), all slopes on log sigma_k over the same entries (h_k, sigma_k, K_k and the four
    factors positive): alpha of log h, beta_delta and beta_a of log lambda, beta of their product,
    phi_delta and phi_a of log rho, phi of their product, chi of log(h / K). Least squares is linear
    in the ordinate, so alpha = beta + phi + chi to rounding.

    ``identity_gap`` is alpha - (beta + phi + chi), ``kronecker_gap`` the largest |K_k - rho rho
    lambda lambda| / K_k. Of the ``n_dropped`` entries ``n_nonpositive`` have a quantity that is
    zero or negative, the others, ``n_beyond_rank``, lie beyond the rank of a factor and have no
    alignment.

    Source: curvature paper, theorem 1 and experiment 9.
    """
    final = final_networks(spectra)
    require_columns(final, ("kronecker", *FACTORS), name="spectra")
    bootstrap = SlopeBootstrap(confidence, resamples, seed)
    layers = track(measured_layers(final), total=count_layers(final), label="decompositions")
    records = [_layer_record(layer, top_k, bootstrap) for layer in layers]
    return load_schema("curvature/decomposition").frame(records)


def _layer_record(layer: MeasuredLayer, top_k: int, bootstrap: SlopeBootstrap) -> dict[str, object]:
    sigma, exact = (layer.values(name)[:top_k] for name in (SIGMA, EXACT))
    record = layer.record | _counts(np.zeros(sigma.size, np.bool_), exact <= 0)
    record["n_beyond_rank"] = 0
    try:
        layer.require_gradient()
        columns = {
            name: measured_values(layer, name, top_k) for name in ("kronecker", *FACTORS)
        } | {"sigma": sigma, "exact": exact}
        used = np.all([values > 0 for values in columns.values()], axis=0)
        nonpositive = np.any([values <= 0 for values in columns.values()], axis=0)
        record |= _counts(used, nonpositive)
        require_entries(used, "h, sigma, Kronecker curvature and its factors > 0")
        kept = {name: values[used] for name, values in columns.items()}
        fits = _slopes(kept, layer, bootstrap)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    parts = fits["beta"] + fits["phi"] + fits["chi"]
    return (
        record
        | fits
        | _kronecker(kept)
        | {"identity_gap": fits["alpha"] - parts, "status": "fit", "reason": ""}
    )


def _counts(used: Mask, nonpositive: Mask) -> dict[str, object]:
    """Entries that enter and that do not, and why: what is not zero or negative is missing."""
    return {
        "n_used": int(np.count_nonzero(used)),
        "n_dropped": int(np.count_nonzero(~used)),
        "n_nonpositive": int(np.count_nonzero(nonpositive)),
        "n_beyond_rank": int(np.count_nonzero(~used & ~nonpositive)),
    }


def _slopes(
    kept: dict[str, Vector], layer: MeasuredLayer, bootstrap: SlopeBootstrap
) -> dict[str, float]:
    """Every slope of :data:`SLOPES` with its interval, and R^2 of alpha."""
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
        if name == "alpha":
            values["alpha_r2"] = fit.r2
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
