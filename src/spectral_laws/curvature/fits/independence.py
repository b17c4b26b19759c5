"""How much of s = alpha gamma is a finding, and how much least squares gives for free.

The three slopes of one layer share their points. With log h = a + alpha log sigma + e, e the
residual of the fit, s = alpha gamma - slope(e on log k) exactly: s differs from alpha gamma only
by what is left of e along log k, and that is little, whatever the curvatures are, because log k
is nearly a line in log sigma, to which e is orthogonal.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import gammaln

from spectral_laws.curvature.fits.layer_tables import (
    EXACT,
    SIGMA,
    MeasuredLayer,
    Vector,
    final_networks,
    measured_layers,
)
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.progress import track
from spectral_laws.rng import generator
from spectral_laws.tables.schemas import load_schema

Path = tuple[str | int, ...]
PARTS = ("first", "second", "whole")


@dataclass(frozen=True)
class Transfer:
    """Slopes of log h on log sigma, and of log sigma and log h on log k, of centred logarithms."""

    alpha: float
    gamma: float
    s: float
    log_k: Vector
    log_sigma: Vector
    log_h: Vector

    @property
    def alpha_r2(self) -> float:
        """Squared correlation of log h and log sigma."""
        return _squared_correlation(self.log_h, self.log_sigma)

    @property
    def gamma_r2(self) -> float:
        """Squared correlation of log sigma and log k."""
        return _squared_correlation(self.log_sigma, self.log_k)


def fit_transfer(sigma: Vector, h: Vector) -> Transfer:
    """Fit the three slopes on the entries with h > 0 and sigma > 0, which keep their rank k."""
    k = np.arange(1, sigma.size + 1, dtype=np.float64)
    alpha = fit_loglog(sigma, h).slope
    used = (sigma > 0) & (h > 0)
    gamma, s = (-fit_loglog(k[used], values[used]).slope for values in (sigma, h))
    if s == 0:
        raise NoFitError("the curvatures do not change with rank (s = 0)")
    logs = [np.log(values[used]) for values in (k, sigma, h)]
    return Transfer(alpha, gamma, s, *(values - values.mean() for values in logs))


def free_error(transfer: Transfer) -> float:
    """Error of s = alpha gamma to be expected from residuals of random direction.

    For e of the observed norm, uniformly random in the m = n - 2 dimensions orthogonal to 1 and
    log sigma, E |slope(e on log k)| = |e| sqrt(1 - R^2_gamma) E|c| / |log k - mean|, with c the
    cosine to a fixed direction, E|c| = Gamma(m/2) / (sqrt(pi) Gamma((m+1)/2)). Returned is that
    over |s|.
    """
    m = transfer.log_k.size - 2
    cosine = float(np.exp(gammaln(m / 2) - gammaln((m + 1) / 2)) / np.sqrt(np.pi))
    residuals = transfer.log_h - transfer.alpha * transfer.log_sigma
    off_line = np.sqrt(max(0.0, 1 - transfer.gamma_r2))
    slope = np.linalg.norm(residuals) * off_line * cosine / np.linalg.norm(transfer.log_k)
    return float(slope) / abs(transfer.s)


def permuted_error(
    transfer: Transfer, *, permutations: int, generator: np.random.Generator
) -> float:
    """Median of |s - alpha gamma| / |s| when h is shuffled among the directions.

    Sigma, and with it gamma, stays as it is; alpha and s are fitted anew to every permutation.
    Permutations with s = 0 count as an infinite error.
    """
    order = generator.permuted(np.tile(transfer.log_h, (permutations, 1)), axis=1)
    alpha = order @ transfer.log_sigma / (transfer.log_sigma @ transfer.log_sigma)
    s = -(order @ transfer.log_k) / (transfer.log_k @ transfer.log_k)
    errors = np.full(permutations, np.inf)
    np.divide(np.abs(s - alpha * transfer.gamma), np.abs(s), out=errors, where=s != 0)
    return float(np.median(errors))


def fit_independence(
    spectra: pd.DataFrame, *, top_k: int, permutations: int, seed: int
) -> pd.DataFrame:
    """Errors of s = alpha gamma on the same, on disjoint and on shuffled points, per layer.

    Final networks that were measured on both halves of the batch enter. Per layer:

    - ``error_same`` = |s - alpha gamma| / |s| on the whole batch,
    - ``error_halves`` = mean of |s_2 - alpha_1 gamma_2| / |s_2| and
      |s_1 - alpha_2 gamma_1| / |s_1|: the fits of alpha and gamma share no sample. As
      s_2 = alpha_2 gamma_2 but for the residual, it is close to |alpha_1 - alpha_2| / |alpha|:
      how well alpha is repeated, which is all that such a test can see,
    - ``error_repeat`` = mean of |s_2 - s_1| / |s_2| and |s_1 - s_2| / |s_1|: how well s itself
      is repeated, to be set beside it,
    - ``error_permuted``: as ``error_same``, with h shuffled (median over permutations),
    - ``error_free``: see :func:`free_error`.

    Source: curvature paper, theorem 7 ("alpha and gamma are fitted on independent data").
    """
    layers = {
        part: {layer.path: layer for layer in measured_layers(final_networks(spectra, part=part))}
        for part in PARTS
    }
    networks = _networks_with_halves(layers)
    paths = sorted({path for part in PARTS for path in layers[part] if path[:2] in networks})
    records = [
        _layer_record({part: layers[part].get(path) for part in PARTS}, top_k, permutations, seed)
        for path in track(paths, total=len(paths), label="layers")
    ]
    return load_schema("curvature/independence").frame(records)


def _networks_with_halves(layers: Mapping[str, Mapping[Path, object]]) -> set[Path]:
    """Networks (model, seed) that were measured on both halves and the whole of the batch."""
    networks = {part: {path[:2] for path in layers[part]} for part in PARTS}
    halves = networks["first"] | networks["second"]
    for part in PARTS:
        absent = sorted(halves - networks[part])
        if absent:
            model, seed = absent[0]
            raise DataError(
                f"spectra table: {model}, seed {seed}, lacks the {part} part of a batch"
            )
    return halves


def _layer_record(
    parts: Mapping[str, MeasuredLayer | None], top_k: int, permutations: int, seed: int
) -> dict[str, object]:
    layer = next(layer for layer in parts.values() if layer is not None)
    whole = parts["whole"]
    record = layer.record | {"n_used": 0 if whole is None else whole.n_usable(top_k)}
    fits: dict[str, Transfer] = {}
    try:
        for part in ("whole", "first", "second"):
            fits[part] = _part_fit(part, parts[part], top_k)
    except NoFitError as error:
        return record | {"status": "no fit", "reason": str(error)}
    for part, fit in fits.items():
        record |= {f"{name}_{part}": getattr(fit, name) for name in ("s", "alpha", "gamma")}
    first, second, same = (fits[part] for part in PARTS)
    stream = generator(seed, "independence", *layer.path)
    return record | {
        "alpha_r2": same.alpha_r2,
        "gamma_r2": same.gamma_r2,
        "error_same": _error(same.s, same.alpha * same.gamma),
        "error_halves": (
            _error(second.s, first.alpha * second.gamma)
            + _error(first.s, second.alpha * first.gamma)
        )
        / 2,
        "error_repeat": (_error(second.s, first.s) + _error(first.s, second.s)) / 2,
        "error_permuted": permuted_error(same, permutations=permutations, generator=stream),
        "error_free": free_error(same),
        "status": "fit",
        "reason": "",
    }


def _part_fit(part: str, layer: MeasuredLayer | None, top_k: int) -> Transfer:
    """The slopes on one part of the batch, on which a layer without gradient has no rows."""
    if layer is None:
        raise NoFitError(f"{part} part of the batch: no direction")
    try:
        layer.require_gradient()
        return fit_transfer(layer.values(SIGMA)[:top_k], layer.values(EXACT)[:top_k])
    except NoFitError as error:
        raise NoFitError(f"{part} part of the batch: {error}") from None


def _error(s: float, predicted: float) -> float:
    """Relative to s."""
    return abs(s - predicted) / abs(s)


def _squared_correlation(x: Vector, y: Vector) -> float:
    """Of centred vectors; 1 where one of them is constant, as in a fit of a constant."""
    norms = float((x @ x) * (y @ y))
    return 1.0 if norms == 0 else float(x @ y) ** 2 / norms
