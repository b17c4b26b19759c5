"""From a measurement and a claim to a verdict: one rule for all claims."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from spectral_laws.claims.registry import Claim
from spectral_laws.errors import NumericalError

Verdict = Literal[
    "reproduced",
    "direction reproduced",
    "not reproduced",
    "inconclusive",
    "uninformative",
    "ill-posed",
    "not run at this scale",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Measurement:
    """A measured quantity with its interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval; None only where the claim says why there is none, or where
            the quantity is not judged.
        high: upper end.
        n_units: number of rows the value is computed from.
        units: what these are, as 'directions'.
        n_clusters: number of independent clusters, which are what is resampled.
        clusters: what these are, as 'teachers'.
        scope: which rows, in a few words, as 'study wide, d = 36 to 50'.
        judged: whether the claim speaks of this quantity.
        beside: other quantities of the same rows, by name, none of them judged.
        n_stratum: number of clusters in the smallest stratum; None without strata.
    """

    value: float
    low: float | None
    high: float | None
    n_units: int
    units: str
    n_clusters: int
    clusters: str
    scope: str = ""
    judged: bool = True
    beside: Mapping[str, "Measurement"] = field(default_factory=dict)
    n_stratum: int | None = None

    def __post_init__(self) -> None:
        ends = [end for end in (self.low, self.high) if end is not None]
        if len(ends) == 1:
            raise ValueError("an interval needs both ends")
        if not all(math.isfinite(number) for number in (self.value, *ends)):
            raise NumericalError(f"a claim's value or interval is not finite: {self}")
        if ends and not ends[0] <= ends[1]:
            raise ValueError(f"an interval needs low <= high: {self}")


def judge(claim: Claim, measurement: Measurement | None) -> Verdict:
    """Verdict of one measurement, its interval I and value v, by the claim's two regions.

    - reproduced: v in ``accept`` and I inside ``direction``;
    - direction reproduced: I inside ``direction``, v outside ``accept``;
    - inconclusive: I reaches into ``accept`` and out of ``direction``;
    - not reproduced: otherwise;
    - not run at this scale: there is no measurement.

    A percentile interval need not hold the value: I is widened to hold it. A claim with
    ``no_interval`` is judged by its value alone.

    Raises:
        ValueError: if the interval is absent and the claim does not say why.
    """
    if measurement is None:
        return "not run at this scale"
    value, low, high = measurement.value, measurement.low, measurement.high
    if low is None or high is None:
        if not claim.no_interval:
            raise ValueError(f"{claim.id}: a measurement without an interval needs a reason why")
        low = high = value
    low, high = min(low, value), max(high, value)
    if claim.direction.contains(low, high):
        return "reproduced" if claim.accept.contains(value, value) else "direction reproduced"
    return "inconclusive" if claim.accept.meets(low, high) else "not reproduced"


def judge_claim(
    claim: Claim, primary: Measurement | None, controls: Iterable[Measurement | None]
) -> Verdict:
    """Verdict on a claim, from its primary measurement and its declared controls.

    - ill-posed: the registry says that the quantity cannot exist;
    - uninformative: a control, which should not pass, does so as well as the claim;
    - else that of the primary measurement (:func:`judge`).
    """
    if claim.ill_posed:
        return "ill-posed"
    passing = ("direction reproduced", "reproduced")
    verdict = judge(claim, primary)
    if verdict in passing:
        enough = passing[passing.index(verdict) :]
        if any(judge(claim, control) in enough for control in controls):
            return "uninformative"
    return verdict
