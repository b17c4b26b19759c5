"""How the claims of the recovery paper are measured.

Its laws are statements about the limit of large d, so they are judged in the Gaussian equivalent,
which is exact in law at the paper's proportions.
"""

from collections.abc import Callable
from functools import partial

from spectral_laws.claims.evidence import Evidence
from spectral_laws.claims.recovery.depth import measure_kernel_gap
from spectral_laws.claims.recovery.errors import measure_error_exponent, measure_theory
from spectral_laws.claims.recovery.overlaps import (
    measure_angle_decay,
    measure_sharp_error,
    measure_smoothing,
    measure_transition,
)
from spectral_laws.claims.recovery.perturbation import (
    measure_expansion_order,
    measure_noise_exponent,
)
from spectral_laws.claims.recovery.thresholds import (
    measure_readout_ratio,
    measure_recovery_order,
    measure_threshold_exponent,
)
from spectral_laws.claims.verdicts import Measurement


def _with_true_features(measure: Callable[..., Measurement]) -> Evidence:
    return Evidence(measure, {"true features": partial(measure, features="hermite")})


def _of_errors(*, steep: bool) -> Evidence:
    measure = partial(measure_error_exponent, steep=steep)
    return Evidence(
        measure,
        {
            "same-sample second layer": partial(measure, second_layer="same_sample"),
            "outliers-only second layer": partial(measure, second_layer="outliers"),
            "true features": partial(measure, features="hermite"),
            "sharp theory": partial(measure_theory, steep=steep),
        },
    )


def _of_perturbation(measure: Callable[..., Measurement]) -> Evidence:
    return Evidence(measure, {"true features of degree 2": partial(measure, degree=2)})


RECOVERY: dict[str, Evidence] = {
    "A1": _with_true_features(measure_threshold_exponent),
    "A2": _with_true_features(measure_transition),
    "A3": _with_true_features(measure_recovery_order),
    "A4": _with_true_features(measure_angle_decay),
    "A5": _of_errors(steep=True),
    "A6": _of_errors(steep=False),
    "A7": Evidence(measure_kernel_gap),
    "A8": _with_true_features(measure_smoothing),
    "A9": _of_perturbation(measure_expansion_order),
    "A10": Evidence(
        measure_readout_ratio,
        {"relu": partial(measure_readout_ratio, readout="relu")}
        | {
            f"true features, {readout}": partial(
                measure_readout_ratio, features="hermite", readout=readout
            )
            for readout in ("tanh", "relu")
        },
    ),
    "A11": _of_perturbation(measure_noise_exponent),
    "A12": _with_true_features(measure_sharp_error),
}
"""How each claim of the recovery paper is measured."""
