"""The table ``claim_measurements`` beside the registry, as pages and figures show it."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.errors import DataError
from spectral_laws.fitting.bootstrap import coverage
from spectral_laws.palette import PAPERS

GROUPS = {
    **PAPERS,
    "identity": "Identities",
    "ours": "Our own statements",
}
"""What is counted apart."""


@dataclass(frozen=True)
class Row:
    """One measurement as text.

    Attributes:
        role: primary, sensitivity or control.
        scope: which rows.
        value: with its interval; empty where there is none.
        sample: what it was computed from, as '549 directions of 9 teachers'.
        clusters: what was resampled, as '9 teachers'.
        coverage: percentages between which an interval of so few clusters covers; empty where
            they are enough, or where there is no interval.
        verdict: empty where the quantity is not judged.
        missing: why there is no value.
    """

    role: str
    scope: str
    value: str
    sample: str
    clusters: str
    coverage: str
    verdict: str
    missing: str


@dataclass(frozen=True)
class View:
    """A claim, the measurement that decides, and those beside it."""

    claim: Claim
    primary: Row
    others: tuple[Row, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All measurements, the primary one first."""
        return (self.primary, *self.others)

    @property
    def group(self) -> str:
        """The part of :data:`GROUPS` in which it is counted."""
        return self.claim.paper if self.claim.kind == "claim" else self.claim.kind


def view_claims(table: pd.DataFrame) -> list[View]:
    """Every claim of a table ``claim_measurements``, in the order of the registry.

    Raises:
        DataError: for an unknown verdict or claim, or a claim without a primary row.
    """
    claims = {claim.id: claim for claim in load_claims()}
    known = {"claim": set(claims), "verdict": {*VERDICTS, ""}}
    for name, names in known.items():
        unknown = sorted(set(table[name].astype(str)) - names)
        if unknown:
            raise DataError(f"claims table: unknown {name} {', '.join(unknown)}")
    rows: dict[str, list[Row]] = {}
    for record in table.to_dict("records"):
        rows.setdefault(str(record["claim"]), []).append(_row(record))
    for name, (first, *_) in rows.items():
        if first.role != "primary" or not first.verdict:
            raise DataError(f"claims table: the first row of {name} must be its primary one")
    return [
        View(claim, rows[name][0], tuple(rows[name][1:]))
        for name, claim in claims.items()
        if name in rows
    ]


def value_text(value: float, low: float, high: float) -> str:
    """A value with its interval, three significant digits: '1.02 [0.97, 1.07]'.

    The value has no digit below a hundredth of the interval; without an interval (NaN) it stands
    alone, and without a value there is no text.
    """
    if math.isnan(value):
        return ""
    if math.isnan(low):
        return f"{value:.3g}"
    sizes = [size for size in (abs(value), high - low) if size > 0]
    digits = min((2 - math.floor(math.log10(size)) for size in sizes), default=0)
    return f"{round(value, digits) + 0.0:.3g} [{low:.3g}, {high:.3g}]"


def _row(record: dict[Any, Any]) -> Row:
    value, low, high = (float(record[name]) for name in ("value", "low", "high"))
    sample = clusters = percent = ""
    if not math.isnan(value):
        count = int(record["n_clusters"])
        stratum = count if pd.isna(record["n_stratum"]) else int(record["n_stratum"])
        clusters = _plural(count, record["clusters"])
        sample = _plural(record["n_units"], record["units"])
        sample = clusters if sample == clusters else f"{sample} of {clusters}"
        if not math.isnan(low) and (covered := coverage(count, stratum)):
            percent = f"{100 * covered[0]:.0f} to {100 * covered[1]:.0f}"
        if stratum < count:
            clusters, sample = (f"{text}, {stratum} per stratum" for text in (clusters, sample))
    return Row(
        str(record["role"]),
        str(record["scope"]),
        value_text(value, low, high),
        sample,
        clusters,
        percent,
        str(record["verdict"]),
        str(record["missing"]),
    )


def _plural(count: int, name: str) -> str:
    """'9 teachers', '1 teacher'; names are plurals."""
    return f"{count:,} {name.removesuffix('s') if count == 1 else name}"
