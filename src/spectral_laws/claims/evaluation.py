"""The referee's table: every claim with our value, its interval and a verdict."""

from collections.abc import Callable

import pandas as pd

from spectral_laws.claims.curvature_layers import (
    measure_conv_alpha,
    measure_head_alpha,
    measure_lognormal_share,
    measure_participation_bound,
    measure_transfer_error,
)
from spectral_laws.claims.recovery_errors import measure_flat_exponent, measure_steep_exponent
from spectral_laws.claims.recovery_overlaps import (
    measure_angle_decay,
    measure_smoothing,
    measure_transition,
)
from spectral_laws.claims.recovery_thresholds import (
    measure_kernel_gap,
    measure_readout_ratio,
    measure_recovery_order,
    measure_threshold_exponent,
)
from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement, judge
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.rng import generator

MEASUREMENTS: dict[str, Callable[[ClaimTables, Resampling], Measurement]] = {
    "A1": measure_threshold_exponent,
    "A2": measure_transition,
    "A3": measure_recovery_order,
    "A4": measure_angle_decay,
    "A5": measure_steep_exponent,
    "A6": measure_flat_exponent,
    "A7": measure_kernel_gap,
    "A8": measure_smoothing,
    "A10": measure_readout_ratio,
    "B1": measure_conv_alpha,
    "B3": measure_head_alpha,
    "B11": measure_transfer_error,
    "B12": measure_lognormal_share,
    "B13": measure_participation_bound,
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
        seed: root seed; every claim has its own stream.

    Returns:
        One row per claim: id, paper, statement, quantity, paper_value, our_value, ci_low, ci_high,
        n, verdict, reason, accept, direction, rule. Numbers are missing where nothing was measured.
    """
    claims = load_claims()
    records = []
    for claim in track(claims, total=len(claims), label="claims"):
        resampling = Resampling(confidence, resamples, generator(seed, "claims", claim.id))
        records.append(_evaluate(claim, tables, resampling))
    table = pd.DataFrame(records)
    numbers = dict.fromkeys(("our_value", "ci_low", "ci_high"), "float64")
    return table.astype({**numbers, "n": "Int64"})


def _evaluate(claim: Claim, tables: ClaimTables, resampling: Resampling) -> dict[str, object]:
    measurement, reason = None, f"not measured: {claim.evidence}"
    if claim.id in MEASUREMENTS:
        try:
            measurement = MEASUREMENTS[claim.id](tables, resampling)
            reason = measurement.reason
        except NoFitError as error:
            reason = str(error)
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
    }
