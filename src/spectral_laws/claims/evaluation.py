"""The referee's table: every claim with our value, its interval and a verdict."""

from collections.abc import Callable

import pandas as pd

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.evidence import Evidence, Measure
from spectral_laws.claims.optimizers.evidence import OPTIMIZERS
from spectral_laws.claims.recovery.evidence import RECOVERY
from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement, judge, value_text
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.rng import generator

MEASUREMENTS: dict[str, Evidence] = {**RECOVERY, **CURVATURE, **OPTIMIZERS}
"""How each claim is measured."""


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
    evidence = MEASUREMENTS[claim.id]
    measurement, reason = _try(evidence.judged, tables, resampling())
    others = [
        (name, *_try(measure, tables, resampling(name)))
        for name, measure in evidence.beside.items()
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
    return (
        f"{where}: {text}, {judge(claim, measurement)}"
        if measurement.judged
        else f"{where}: {text}"
    )
