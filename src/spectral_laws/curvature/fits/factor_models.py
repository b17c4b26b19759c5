"""Rank models of the Kronecker factors' eigenvalues against those of the gradient."""

import numpy as np
import pandas as pd

from spectral_laws.curvature.fits.layer_tables import (
    LAYER,
    SIGMA,
    final_networks,
    layer_name,
    measured_layers,
    require_columns,
)
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.rank_models import compare_rank_models
from spectral_laws.tables.schemas import load_schema

_KEY = ("model", "seed", "layer_index")
_MODELS = ("rank_model", "gradient_rank_model", "same")
_SIZES = ("size", "participation_rank", "entropy_rank")


def compare_factor_models(
    factors: pd.DataFrame, spectra: pd.DataFrame, *, top_k: int
) -> pd.DataFrame:
    """Which rank model each factor's eigenvalues have, and whether the gradient's is the same.

    Per factor the rank models of :func:`compare_rank_models` are fitted to its ``top_k`` leading
    eigenvalues, and to the layer's ``top_k`` leading singular values; ``same`` is whether they
    agree.

    Source: curvature paper, experiment 9.
    """
    require_columns(factors, (*LAYER, "factor", *_SIZES, "index", "eigenvalue"), name="factors")
    gradients = {
        layer.path: layer.values(SIGMA)[:top_k]
        for layer in measured_layers(final_networks(spectra))
    }
    records = []
    for _, group in factors.groupby([*LAYER, "factor"], sort=True):
        rows = group.sort_values("index")
        record = {name: rows[name].iloc[0] for name in (*LAYER, "factor", *_SIZES)}
        what = f"factor {record['factor']} of {layer_name(record)}"
        if not np.array_equal(rows["index"].to_numpy(), np.arange(1, len(rows) + 1)):
            raise DataError(f"factors table: the index of {what} is not 1, 2, ..., {len(rows)}")
        path = tuple(record[name] for name in _KEY)
        if path not in gradients:
            raise DataError(f"factors table: {what} is not in the spectra of final networks")
        eigenvalues = rows["eigenvalue"].to_numpy(np.float64)[:top_k]
        records.append(record | _models(eigenvalues, gradients[path]))
    return load_schema("curvature/factor_models").frame(records)


def _models(eigenvalues: np.ndarray, singular_values: np.ndarray) -> dict[str, object]:
    """The two rank models and whether they are the same."""
    found: dict[str, object] = dict.fromkeys(_MODELS)
    try:
        factor = compare_rank_models(eigenvalues).best
    except NoFitError as error:
        return found | {"status": "no fit", "reason": f"factor: {error}"}
    try:
        gradient = compare_rank_models(singular_values).best
    except NoFitError as error:
        return found | {"status": "no fit", "reason": f"gradient: {error}"}
    return {
        "rank_model": factor,
        "gradient_rank_model": gradient,
        "same": factor == gradient,
        "status": "fit",
        "reason": "",
    }
