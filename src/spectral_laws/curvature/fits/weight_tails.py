"""Heavy tails of the weights: decay of singular values, and the tail of the eigenvalues."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import powerlaw  # type: ignore[import-untyped]
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.fits.layer_tables import (
    LAYER,
    count_layers,
    final_networks,
    layer_name,
    require_columns,
)
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.progress import track
from spectral_laws.tables.schemas import load_schema

MINIMUM_EIGENVALUES = 10
"""Fewer different positive eigenvalues than this have no tail fit."""
LEADING = 20
"""Singular values of the weight that enter its decay, as in the author's files."""


@dataclass(frozen=True)
class Tail:
    """Power-law tail p(x) ~ x^-exponent for x >= xmin."""

    exponent: float  # maximum-likelihood exponent
    xmin: float  # start of the tail, where the Kolmogorov-Smirnov distance is smallest
    n: int  # values in the tail
    sigma: float  # standard error of the exponent, (exponent - 1) / sqrt(n)
    ks: float  # that distance; large where no tail is a power law


def fit_tail(values: NDArray[np.floating], *, name: str = "values") -> Tail:
    """Fit the power-law tail of positive values (Clauset, Shalizi and Newman 2009)."""
    array = np.asarray(values, dtype=np.float64)
    check_finite(name, array)
    positive = array[array > 0]
    n_different = np.unique(positive).size
    if n_different < MINIMUM_EIGENVALUES:
        raise NoFitError(
            f"{n_different} different positive values of {array.size}; a tail needs "
            f"{MINIMUM_EIGENVALUES}"
        )
    scale = float(positive.max())
    scaled = positive / scale
    with warnings.catch_warnings():
        # The library calls a name that it has deprecated, and advises on integers and exponents.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        tail = powerlaw.Fit(
            scaled,
            xmin=_tail_start(scaled),
            discrete=False,
            # By default exponents above 3 are refused, and those of weights are often larger.
            parameter_ranges={"alpha": [1.0, None]},
            verbose=0,
        ).power_law
        found = Tail(
            exponent=float(tail.alpha),
            xmin=float(tail.xmin) * scale,
            n=int(tail.n),
            sigma=float(tail.standard_err),
            ks=float(tail.D),
        )
    check_finite(f"tail of {name}", [found.exponent, found.xmin, found.sigma, found.ks])
    return found


def _tail_start(values: NDArray[np.float64]) -> float:
    """The value from which on a power law has the smallest Kolmogorov-Smirnov distance.

    It is the library's own choice (a test compares them), which takes it a millisecond per value.
    """
    ordered = np.sort(values)
    different, first = np.unique(ordered, return_index=True)
    logs = np.log(ordered)
    sums = np.cumsum(logs[::-1])[::-1]
    distances = np.empty(different.size - 2)  # a tail has three different values or more
    for i in range(distances.size):
        n = ordered.size - first[i]
        above = np.log(different[i:]) - logs[first[i]]
        exponent = 1 + n / (sums[first[i]] - n * logs[first[i]])
        model = -np.expm1((1 - exponent) * above)
        distances[i] = np.abs(model - (first[i:] - first[i]) / n).max()
    return float(different[np.argmin(distances)])


def weight_decay_exponent(singular_values: NDArray[np.floating]) -> float:
    """Minus the slope of log singular value on log k over the leading 20: the author's s_weight."""
    leading = np.asarray(singular_values, dtype=np.float64)[:LEADING]
    return -fit_loglog(np.arange(1, leading.size + 1), leading).slope


def fit_weight_tails(
    networks: Mapping[tuple[str, int], Mapping[str, NDArray[np.floating]]], spectra: pd.DataFrame
) -> pd.DataFrame:
    """Decay and tail of every measured layer's weight, of networks at the end of training.

    The weight W of a layer is flattened to (n_rows, rest), as its gradient. With its singular
    values w_1 >= w_2 >= ...: ``decay`` is minus the slope of log w_k on log k over the leading 20,
    ``tail_exponent`` the exponent of the power-law tail of the eigenvalues w_k^2 of W^T W.
    ``networks`` are state dictionaries by (model, seed), which must be those of ``spectra``.

    Source: curvature paper, comparison of weight tails with s.
    """
    require_columns(spectra, (*LAYER, "n_rows", "n_columns"), name="spectra")
    layers = final_networks(spectra).drop_duplicates([*LAYER])
    wanted = pd.MultiIndex.from_frame(layers[["model", "seed"]]).isin(list(networks))
    layers = layers[wanted].sort_values(["model", "seed", "layer_index"])
    found = set(zip(layers["model"], layers["seed"], strict=True))
    for model, seed in networks:
        if (model, seed) not in found:
            raise DataError(f"spectra table: no final layers of {model}, seed {seed}")
    matrices = track(_matrices(networks, layers), total=count_layers(layers), label="weights")
    records = [record | _fits(matrix, layer_name(record)) for record, matrix in matrices]
    return load_schema("curvature/weights").frame(records)


def _matrices(
    networks: Mapping[tuple[str, int], Mapping[str, NDArray[np.floating]]], layers: pd.DataFrame
) -> Iterator[tuple[dict[str, object], NDArray[np.float64]]]:
    """Each layer's record and its weight as a matrix."""
    for row in layers.to_dict("records"):
        record: dict[str, object] = {name: row[name] for name in LAYER}
        arrays, key = networks[row["model"], row["seed"]], f"{row['layer']}.weight"
        if key not in arrays:
            raise DataError(f"weights of {row['model']}, seed {row['seed']}: no array {key!r}")
        weight = np.asarray(arrays[key], dtype=np.float64)
        matrix = weight.reshape(weight.shape[0], -1)
        if matrix.shape != (row["n_rows"], row["n_columns"]):
            raise DataError(
                f"weight of {layer_name(record)} is {matrix.shape[0]} x {matrix.shape[1]}, its "
                f"gradient {row['n_rows']} x {row['n_columns']}"
            )
        check_finite(f"weight of {layer_name(record)}", matrix)
        yield record, matrix


def _fits(matrix: NDArray[np.float64], name: str) -> dict[str, object]:
    singular_values = np.linalg.svd(matrix, compute_uv=False)
    rank = np.count_nonzero(
        singular_values > singular_values[0] * max(matrix.shape) * np.finfo(np.float32).eps
    )
    kept = singular_values[:rank]  # weights are float32: the rest is rounding
    values: dict[str, object] = {}
    try:
        values["decay"] = weight_decay_exponent(kept)
        tail = fit_tail(kept**2, name=f"eigenvalues of {name}")
    except NoFitError as error:
        return values | {"status": "no fit", "reason": str(error)}
    return values | {
        "tail_exponent": tail.exponent,
        "tail_xmin": tail.xmin,
        "tail_n": tail.n,
        "tail_sigma": tail.sigma,
        "ks": tail.ks,
        "status": "fit",
        "reason": "",
    }
