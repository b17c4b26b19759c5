"""From a measurement and a claim to a verdict: one rule for all claims."""

import math
from dataclasses import dataclass
from typing import Literal

from spectral_laws.claims.registry import Claim
from spectral_laws.errors import NumericalError

Verdict = Literal["reproduced", "direction reproduced", "not reproduced", "not run at this scale"]
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "direction reproduced",
    "not reproduced",
    "not run at this scale",
)


@dataclass(frozen=True)
class Measurement:
    """A measured quantity with its interval.

    Attributes:
        value: the estimate.
        ci_low: lower end of the interval; None only where the claim says why there is none.
        ci_high: upper end.
        n: number of units the value rests on (directions, layers, teachers; ``reason`` says).
        reason: what was measured on what, in a sentence.
        scope: the same in a few words, as 'd = 25 to 64'.
        judged: whether the claim speaks of this quantity; others stand beside it without a verdict.
    """

    value: float
    ci_low: float | None
    ci_high: float | None
    n: int
    reason: str
    scope: str = ""
    judged: bool = True

    def __post_init__(self) -> None:
        ends = [end for end in (self.ci_low, self.ci_high) if end is not None]
        if len(ends) == 1:
            raise ValueError("an interval needs both ends")
        if not all(math.isfinite(number) for number in (self.value, *ends)):
            raise NumericalError(f"a claim's value or interval is not finite: {self}")
        if ends and not ends[0] <= ends[1]:
            raise ValueError(f"an interval needs low <= high: {self}")


def value_text(value: float, low: float | None, high: float | None) -> str:
    """A value with its interval, three significant digits: '1.02 [0.97, 1.07]'."""
    text = f"{value:.3g}"
    return text if low is None or high is None else f"{text} [{low:.3g}, {high:.3g}]"


def judge(claim: Claim, measurement: Measurement | None) -> Verdict:
    """Verdict on a claim.

    - reproduced: the value lies in ``accept`` and the whole interval in ``direction``;
    - direction reproduced: the whole interval lies in ``direction``, the value not in ``accept``;
    - not reproduced: otherwise;
    - not run at this scale: there is no measurement.

    The value must itself lie in ``direction``: a percentile interval need not hold it. A claim
    with ``no_interval`` is judged by its value alone.

    Raises:
        ValueError: if the interval is absent and the claim does not say why.
    """
    if measurement is None:
        return "not run at this scale"
    value = measurement.value
    low, high = measurement.ci_low, measurement.ci_high
    if low is None or high is None:
        if not claim.no_interval:
            raise ValueError(f"{claim.id}: a measurement without an interval needs a reason why")
        low = high = value
    if not claim.direction.contains(min(low, value), max(high, value)):
        return "not reproduced"
    return "reproduced" if claim.accept.contains(value, value) else "direction reproduced"
