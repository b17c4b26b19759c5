"""The referee's table: every claim with our value, its interval and a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from spectral_laws.claims.curvature_layers import (
    measure_conv_alpha,
    measure_head_alpha,
    measure_lognormal_share,
    measure_participation_bound,
    measure_transfer_error,
)
from spectral_laws.claims.recovery_depth import measure_kernel_gap
from spectral_laws.claims.recovery_errors import measure_flat_exponent, measure_steep_exponent
from spectral_laws.claims.recovery_overlaps import (
    measure_angle_decay,
    measure_sharp_error,
    measure_smoothing,
    measure_transition,
)
from spectral_laws.claims.recovery_perturbation import (
    measure_expansion_order,
    measure_noise_exponent,
)
from spectral_laws.claims.recovery_thresholds import (
    measure_readout_ratio,
    measure_recovery_order,
    measure_threshold_exponent,
)
from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement, judge, value_text
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.rng import generator

Measure = Callable[[ClaimTables, Resampling], Measurement]


@dataclass(frozen=True)
class Evidence:
    """How a claim is measured.

    Attributes:
        judged: the measurement that decides the verdict. The recovery paper's laws are statements
            about the limit of large d, so theirs is made in the Gaussian equivalent, which is
            exact in law at the paper's proportions.
        beside: the same quantity measured on other rows, by a name for them.
    """

    judged: Measure
    beside: tuple[tuple[str, Measure], ...] = ()


def _with_true_features(measure: Callable[..., Measurement]) -> Evidence:
    return Evidence(measure, (("true features", partial(measure, features="hermite")),))


def _of_errors(measure: Callable[..., Measurement]) -> Evidence:
    return Evidence(
        measure,
        (
            ("same-sample second layer", partial(measure, second_layer="same_sample")),
            ("outliers-only second layer", partial(measure, second_layer="outliers")),
            ("true features", partial(measure, features="hermite")),
        ),
    )


def _of_perturbation(measure: Callable[..., Measurement]) -> Evidence:
    return Evidence(measure, (("true features of degree 2", partial(measure, degree=2)),))


MEASUREMENTS: dict[str, Evidence] = {
    "A1": _with_true_features(measure_threshold_exponent),
    "A2": _with_true_features(measure_transition),
    "A3": _with_true_features(measure_recovery_order),
    "A4": _with_true_features(measure_angle_decay),
    "A5": _of_errors(measure_steep_exponent),
    "A6": _of_errors(measure_flat_exponent),
    "A7": Evidence(measure_kernel_gap),
    "A8": _with_true_features(measure_smoothing),
    "A9": _of_perturbation(measure_expansion_order),
    "A10": Evidence(
        measure_readout_ratio,
        tuple(
            (
                f"true features, {readout}",
                partial(measure_readout_ratio, features="hermite", readout=readout),
            )
            for readout in ("tanh", "relu")
        ),
    ),
    "A11": _of_perturbation(measure_noise_exponent),
    "A12": _with_true_features(measure_sharp_error),
    "B1": Evidence(measure_conv_alpha),
    "B3": Evidence(measure_head_alpha),
    "B11": Evidence(measure_transfer_error),
    "B12": Evidence(measure_lognormal_share),
    "B13": Evidence(measure_participation_bound),
}
"""How each claim is measured; the other claims need evidence that no table holds."""


def evaluate_claims(
    tables: ClaimTables, *, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Measure and judge every claim.

    Args:
        tables: what was measured; a claim without its tables is 'not run at this scale'.
        confidence: of the bootstrap intervals.
        resamples: bootstrap resamples.
        seed: root seed; every claim, and every measurement beside it, has its own stream.

    Returns:
        One row per claim: id, paper, statement, quantity, paper_value, our_value, ci_low, ci_high,
        n, verdict, reason, accept, direction, rule, beside. Numbers are missing where nothing was
        measured; ``beside`` is empty where nothing stands beside the claim.
    """
    claims = load_claims()
    records = []
    for claim in track(claims, total=len(claims), label="claims"):

        def resampling(*name: str, claim: Claim = claim) -> Resampling:
            return Resampling(confidence, resamples, generator(seed, "claims", claim.id, *name))

        records.append(_evaluate(claim, tables, resampling))
    table = pd.DataFrame(records)
    numbers = dict.fromkeys(("our_value", "ci_low", "ci_high"), "float64")
    return table.astype({**numbers, "n": "Int64"})


def _evaluate(
    claim: Claim, tables: ClaimTables, resampling: Callable[..., Resampling]
) -> dict[str, object]:
    measurement, reason, beside = None, f"not measured: {claim.evidence}", ""
    if claim.id in MEASUREMENTS:
        evidence = MEASUREMENTS[claim.id]
        measurement, reason = _try(evidence.judged, tables, resampling())
        others = [
            (name, *_try(measure, tables, resampling(name))) for name, measure in evidence.beside
        ]
        # Nobody needs to read the same reason twice.
        beside = "; ".join(
            _beside(claim, name, other, "" if why == reason else why) for name, other, why in others
        )
    return {
        "id": claim.id,
        "paper": claim.paper,
        "statement": claim.statement,
        "quantity": claim.quantity,
        "paper_value": claim.paper_value,
        "our_value": measurement.value if measurement else None,
        "ci_low": measurement.ci_low if measurement else None,
        "ci_high": measurement.ci_high if measurement else None,
        "n": measurement.n if measurement else None,
        "verdict": judge(claim, measurement),
        "reason": reason,
        "accept": str(claim.accept),
        "direction": str(claim.direction),
        "rule": claim.rule,
        "beside": beside,
    }


def _try(
    measure: Measure, tables: ClaimTables, resampling: Resampling
) -> tuple[Measurement | None, str]:
    """The measurement, or None, and what it rests on or why there is none."""
    try:
        measurement = measure(tables, resampling)
    except NoFitError as error:
        return None, str(error)
    return measurement, measurement.reason


def _beside(claim: Claim, name: str, measurement: Measurement | None, reason: str) -> str:
    """One measurement beside a claim's: 'true features, d = 25 to 64: 0.6 [0.5, 0.7], verdict'."""
    if measurement is None:
        return f"{name}: not run ({reason})" if reason else f"{name}: not run"
    where = f"{name}, {measurement.scope}" if measurement.scope else name
    text = value_text(measurement.value, measurement.ci_low, measurement.ci_high)
    return f"{where}: {text}, {judge(claim, measurement)}"
