"""What it takes to judge a claim: one measurement, and others that stand beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement

Measure = Callable[[ClaimTables, Resampling], Measurement]


@dataclass(frozen=True)
class Evidence:
    """How a claim is measured.

    Attributes:
        judged: the measurement that decides the verdict.
        beside: the same quantity measured on other rows, or in another way, by a name for it.
    """

    judged: Measure
    beside: Mapping[str, Measure] = field(default_factory=dict)
