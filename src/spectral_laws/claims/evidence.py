"""What it takes to judge a claim: a primary measurement, sensitivity rows and controls."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement

Measure = Callable[[ClaimTables, Resampling], Measurement]
"""A quantity with its interval, from the tables of all jobs.

It raises NoFitError, whose text stands in the claim's row, where a table, the rows it needs or its
value is missing, or where there are too few clusters to resample.
"""
Role = Literal["primary", "sensitivity", "control"]


@dataclass(frozen=True)
class Evidence:
    """How a claim is measured.

    Attributes:
        primary: the measurement that decides the verdict.
        sensitivity: the same quantity measured on other rows, or in another way, by name.
        control: measurements by name that should not pass; if one does, the claim says nothing.
    """

    primary: Measure
    sensitivity: Mapping[str, Measure] = field(default_factory=dict)
    control: Mapping[str, Measure] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[Role, str, Measure]]:
        """Role, name and function of every measurement; the primary one has no name."""
        yield "primary", "", self.primary
        for name, measure in self.sensitivity.items():
            yield "sensitivity", name, measure
        for name, measure in self.control.items():
            yield "control", name, measure
