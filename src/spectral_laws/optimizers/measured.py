"""Measured exponents of a model's layers, averaged over its trainings."""

import pandas as pd

from spectral_laws.errors import DataError

_COLUMNS = ("model", "layer", "final", "status", "alpha", "s")


def layer_means(exponents: pd.DataFrame, model: str, column: str) -> dict[str, float]:
    """Mean of alpha or s over the trained networks of a model, by layer.

    Layers without a fit in any training are left out.

    Args:
        exponents: table of ``fit_exponents``.
        model: name in the table.
        column: ``alpha`` or ``s``.

    Raises:
        DataError: if the table lacks a column, or has no fitted layer of this model.
    """
    missing = [name for name in _COLUMNS if name not in exponents.columns]
    if missing:
        raise DataError(f"exponents table: no column {', '.join(missing)}")
    rows = exponents[(exponents["model"] == model) & exponents["final"].astype(bool)]
    rows = rows[rows["status"] == "fit"]
    if rows.empty:
        raise DataError(f"exponents table: no fitted layer of a trained model {model!r}")
    means = rows.groupby("layer", sort=False)[column].mean()
    return {str(layer): float(value) for layer, value in means.items()}
