"""Measured exponents of a model's layers, averaged over its trainings."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from torch import nn

from spectral_laws.errors import DataError
from spectral_laws.optimizers.parameter_groups import parameter_groups

_COLUMNS = ("model", "layer", "final", "status", "alpha", "s")


def layer_means(exponents: pd.DataFrame, model: str, column: str) -> dict[str, float]:
    """Mean of alpha or s over the trained networks of a model, by layer.

    Layers without a fit in any training are left out. ``exponents`` is the table of
    ``fit_exponents``, ``column`` ``alpha`` or ``s``.
    """
    missing = [name for name in _COLUMNS if name not in exponents.columns]
    if missing:
        raise DataError(f"exponents table: no column {', '.join(missing)}")
    if not pd.api.types.is_bool_dtype(exponents["final"]):
        raise DataError("exponents table: column final holds something else than true and false")
    if not pd.api.types.is_float_dtype(exponents[column]):
        raise DataError(f"exponents table: column {column} holds something else than numbers")
    rows = exponents[(exponents["model"] == model) & exponents["final"].astype(bool)]
    rows = rows[rows["status"] == "fit"]
    if rows.empty:
        raise DataError(f"exponents table: no fitted layer of a trained model {model!r}")
    if not np.isfinite(rows[column]).all():
        raise DataError(f"exponents table: a fitted layer of model {model!r} has no {column}")
    means = rows.groupby("layer", sort=False)[column].mean()
    return {str(layer): float(value) for layer, value in means.items()}


def check_layers(network: nn.Module, layers: Iterable[str], *, model: str) -> None:
    """Check that measured layers are layers with a matrix of a network."""
    try:
        parameter_groups(network, alpha=dict.fromkeys(layers, 1.0))
    except ValueError as error:
        raise DataError(
            f"exponents table: {error} of the network {model!r}; it was measured on another"
        ) from None
