"""Measurements of the claims on decay exponents: B11 (s = alpha gamma), B22 (weights)."""

from dataclasses import replace
from typing import Literal

import numpy as np

from spectral_laws.claims.curvature.layers import layer_median
from spectral_laws.claims.curvature.selections import (
    LAYER,
    final_layers,
    having,
    medians_text,
    models_of,
)
from spectral_laws.claims.resampling import TRAINING, Index, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

TransferControl = Literal["error_halves", "error_repeat", "error_permuted", "error_free"]
_CONTROLS: dict[TransferControl, str] = {
    "error_halves": "with alpha from one half of the batch, gamma and s from the other",
    "error_repeat": "between the s of the two halves",
    "error_permuted": "with h permuted",
    "error_free": "from least squares alone at the observed R^2",
}


def measure_transfer_error(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B11: median of |s - alpha gamma| / |s| over layers, all three from the same batch.

    The reason holds the three controls, because this number alone says little.

    Raises:
        NoFitError: if no layer was fitted, or a network was trained too few times.
    """
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, text = having(layers, "transfer_error", "layers")
    measured = layer_median(rows, "transfer_error", resampling, text)
    by_sorting = float(rows["transfer_error_sorted"].median())
    reason = (
        f"{text}; {by_sorting:.3g} with s fitted to sorted curvatures, as in the author's files; "
        f"{_controls_text(tables, resampling)}"
    )
    return replace(measured, reason=reason)


def measure_transfer_control(
    tables: ClaimTables, resampling: Resampling, *, column: TransferControl
) -> Measurement:
    """Beside B11: the median error of one control.

    ``error_halves``: alpha of one half of the batch, gamma and s of the other, both ways: least
    squares makes it the difference of the two alphas. ``error_repeat``: s of one half against s of
    the other, the noise to set beside it.
    ``error_permuted``: h permuted among the directions. ``error_free``: what least squares leaves
    for residuals of random direction at the observed R^2, no matter what relates h and sigma.

    Raises:
        NoFitError: if no layer has it, or a network was trained too few times.
    """
    layers = final_layers(tables, "independence", models_of(tables))
    rows, text = having(layers, column, "layers")
    return layer_median(rows, column, resampling, text)


def measure_weight_tail(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    column: Literal["decay", "tail_exponent"] = "decay",
) -> Measurement:
    """B22: median over layers of the weight's exponent minus s.

    ``decay`` is minus the slope of log singular value of W on log k, as in the author's files;
    ``tail_exponent`` that of the density of the eigenvalues of W^T W.

    Raises:
        NoFitError: if no layer has both, or a network was trained too few times.
    """
    models = models_of(tables)
    tails = final_layers(tables, "weights", models)[[*LAYER, "role", column]]
    decays = final_layers(tables, "exponents", models)[[*LAYER, "s"]]
    layers = tails.merge(decays, on=LAYER, how="left", validate="one_to_one")
    rows, text = having(layers.assign(gap=layers[column] - layers["s"]), "gap", "layers")
    below = float((rows["gap"] < 0).mean())
    reason = (
        f"{text}; median {column.replace('_', ' ')} {rows[column].median():.3g}, median s "
        f"{rows['s'].median():.3g}, below s in {below:.0%} of the layers{medians_text(rows, 'gap')}"
    )
    return layer_median(rows, "gap", resampling, reason)


def _controls_text(tables: ClaimTables, resampling: Resampling) -> str:
    """The median error of every control, with intervals."""
    try:
        layers = final_layers(tables, "independence", models_of(tables))
    except NoFitError as error:
        return f"{error}, so nothing says how much of this least squares gives for free"
    texts = []
    for column, name in _CONTROLS.items():
        rows = layers[layers[column].notna()].reset_index(drop=True)
        if rows.empty:
            texts.append(f"no value {name}")
            continue
        values = rows[column].to_numpy(np.float64)

        def median(index: Index, values: np.ndarray = values) -> float:
            return float(np.median(values[index]))

        text = resampling.text(rows, median, cluster=TRAINING, strata=["model"])
        texts.append(f"{text} {name}")
    return "controls: " + ", ".join(texts)
