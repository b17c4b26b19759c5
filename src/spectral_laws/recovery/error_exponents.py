"""Exponents of the test error from the sharp theory, at widths no simulation reaches."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.progress import track
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.scaling_laws import tail_mse
from spectral_laws.recovery.teacher import draw_weights
from spectral_laws.recovery.theory import SECOND_LAYERS, predict, predict_mse
from spectral_laws.rng import generator
from spectral_laws.settings.recovery import ErrorExponents

Vector = NDArray[np.float64]

_SIZES = 24
_UNIT = 10**9  # D, which the theory does not depend on at fixed n / D


def asymptotic_exponent(gamma: float) -> float:
    """Exponent of the paper's law: -1 + 1/(2 gamma) above gamma = 1/2, 1/(2 gamma) - 1 below."""
    if gamma <= 0 or gamma == 0.5:
        raise ValueError(f"no power law at gamma = {gamma}")
    return -1.0 + 1.0 / (2.0 * gamma)


def error_exponents(weights: Vector, *, gamma: float, first: int, last: int) -> dict[str, float]:
    """Exponents in n of the test error while n = D / lambda_k^2 runs from k = first to last.

    Least-squares slopes in logarithms over sample sizes evenly spaced in log n: of the MSE for
    gamma > 1/2 and of 1 - MSE below. ``gamma`` chooses which of the two laws. Returned is one
    exponent for each second layer (sharp theory, identity readout) and for the ``tail`` sum of the
    paper's argument.
    """
    squares = weights**2
    # n / D; a hair above the thresholds themselves, where rounding would decide on the tail sum.
    ratios = np.geomspace(1 / squares[first - 1], 1 / squares[last - 1], _SIZES) * (1 + 1e-9)
    # Outliers appear from n = D / (2 lambda^2) on, so weaker directions are hidden throughout.
    count = int(np.count_nonzero(squares * ratios[-1] > 0.4))
    law = LabelLaw.of(weights, count=count)
    predictions = [predict(law, 1 / ratio) for ratio in ratios]
    errors = {name: [predict_mse(law, p, name) for p in predictions] for name in SECOND_LAYERS}
    curves: dict[str, Vector] = {name: np.array(values) for name, values in errors.items()}
    curves["tail"] = tail_mse(ratios * _UNIT, _UNIT, weights)
    if gamma < 0.5:
        curves = {name: 1.0 - mse for name, mse in curves.items()}
    return {name: fit_loglog(ratios, curve).slope for name, curve in curves.items()}


def tabulate_error_exponents(settings: ErrorExponents, *, seed: int) -> pd.DataFrame:
    """Exponents for every gamma, width and draw of the signs.

    Columns: gamma, n_directions, seed, first, last, second_layer (or ``tail``), exponent.
    """
    places = [
        (gamma, width, replicate)
        for gamma in settings.gammas
        for width in settings.widths
        for replicate in range(settings.seeds)
    ]
    rows = []
    for gamma, width, replicate in track(places, total=len(places), label="error exponents"):
        weights = draw_weights(width, gamma, generator(seed, "error exponents", width, replicate))
        last = round(settings.last_share * width)
        found = error_exponents(weights, gamma=gamma, first=settings.first, last=last)
        rows += [
            {
                "gamma": gamma,
                "n_directions": width,
                "seed": replicate,
                "first": settings.first,
                "last": last,
                "second_layer": name,
                "exponent": exponent,
            }
            for name, exponent in found.items()
        ]
    return pd.DataFrame(rows)
