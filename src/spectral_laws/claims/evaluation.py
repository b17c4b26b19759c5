"""Every claim measured: one tidy table, which texts, pages and figures are rendered from."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.evidence import Evidence, Role
from spectral_laws.claims.optimizers import OPTIMIZERS
from spectral_laws.claims.recovery.evidence import RECOVERY
from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement, judge, judge_claim
from spectral_laws.errors import NoFitError
from spectral_laws.progress import track
from spectral_laws.rng import generator

_NUMBERS, _COUNTS = ("value", "low", "high"), ("n_units", "n_clusters", "n_stratum")

EVIDENCE: dict[str, Evidence] = {**RECOVERY, **CURVATURE, **OPTIMIZERS}
"""How each claim is measured."""


def evaluate_claims(
    tables: ClaimTables, *, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Measure and judge every claim.

    Args:
        tables: what was measured; a claim without its tables is 'not run at this scale'.
        confidence: of the bootstrap intervals.
        resamples: bootstrap resamples.
        seed: root seed; every measurement has its own stream.

    Returns:
        The table ``claim_measurements``: claim, role, scope, value, low, high, n_units, units,
        n_clusters, clusters, n_stratum, verdict, missing. The verdict of the primary row is the
        claim's; it is empty where a quantity is not judged. ``missing`` says why there is no value.
    """
    claims = load_claims()
    records: list[dict[str, Any]] = []
    for claim in track(claims, total=len(claims), label="claims"):
        records += _measure(claim, tables, confidence, resamples, seed)
    table = pd.DataFrame(records)
    return table.astype({**dict.fromkeys(_NUMBERS, "float64"), **dict.fromkeys(_COUNTS, "Int64")})


def _measure(
    claim: Claim, tables: ClaimTables, confidence: float, resamples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The rows of one claim, the primary one first."""
    found: list[tuple[Role, str, Measurement | None, str]] = []
    for role, name, measure in EVIDENCE[claim.id].rows():
        stream = generator(seed, "claims", claim.id, *([name] if name else []))
        resampling = Resampling(confidence, resamples, stream)
        try:
            found.append((role, name, measure(tables, resampling), ""))
        except NoFitError as error:
            found.append((role, name, None, str(error)))
    controls = [measurement for role, _, measurement, _ in found if role == "control"]
    for role, name, measurement, missing in found:
        verdict = ""
        if role == "primary":
            verdict = judge_claim(claim, measurement, controls)
        elif measurement is None or measurement.judged:
            verdict = judge(claim, measurement)
        yield _record(claim, role, name, measurement, verdict, missing)
        for other, beside in (measurement.beside if measurement else {}).items():
            both = f"{name}: {other}" if name else other
            yield _record(claim, "sensitivity", both, beside, "", "")


def _record(
    claim: Claim, role: str, name: str, measurement: Measurement | None, verdict: str, missing: str
) -> dict[str, Any]:
    of = measurement
    return {
        "claim": claim.id,
        "role": role,
        "scope": ", ".join(text for text in (name, of.scope if of else "") if text),
        **{column: getattr(of, column, None) for column in (*_NUMBERS, "n_units")},
        "units": of.units if of else "",
        "n_clusters": of.n_clusters if of else None,
        "clusters": of.clusters if of else "",
        "n_stratum": of.n_stratum if of else None,
        "verdict": verdict,
        "missing": missing,
    }
