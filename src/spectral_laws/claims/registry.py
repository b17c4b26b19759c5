"""The claims of both papers as data: ``registry.yaml``, checked when it is read.

What counts as reproduced was written down before any value of ours existed, and is not changed
after a value is seen.
"""

import datetime
import math
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from spectral_laws.settings.yaml_files import read_yaml

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Region(BaseModel):
    """A closed interval of the real line; an end left open (null) is infinite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: float = Field(default=-math.inf)
    high: float = Field(default=math.inf)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def __str__(self) -> str:
        ends = (f"{self.low:g}", f"{self.high:g}")
        return f"[{ends[0]}, {ends[1]}]"

    def contains(self, low: float, high: float) -> bool:
        """Whether the whole interval [low, high] lies inside."""
        return self.low <= low and high <= self.high

    def meets(self, low: float, high: float) -> bool:
        """Whether the interval [low, high] reaches inside."""
        return low <= self.high and self.low <= high


class Claim(BaseModel):
    """One claim of a paper and the rule by which a measurement is judged.

    Attributes:
        id: A1 ... A12 (recovery paper), B1 ... B22 (curvature paper).
        paper: which paper.
        statement: the claim in plain words.
        paper_value: the paper's figure, as text.
        quantity: the number that is measured to judge it.
        evidence: where the number comes from.
        accept: values that count as the paper's value.
        direction: values at which the claim's sign or ordering holds.
        rule: why these two regions.
        figures: where it is seen, the most telling first.
        tables: what it, and what stands beside it, is measured from.
        kind: a claim of the paper, an identity (true of any network), or a statement of ours;
            they are counted apart.
        no_interval: why the quantity has no confidence interval; empty where it has one.
        ill_posed: why the quantity cannot exist; empty where it can.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(pattern=r"^[AB][1-9][0-9]?$")]
    paper: Literal["recovery", "curvature"]
    statement: Text
    paper_value: Text
    quantity: Text
    evidence: Text
    accept: Region
    direction: Region
    rule: Text
    figures: Annotated[tuple[Text, ...], Field(min_length=1)]
    tables: Annotated[tuple[Text, ...], Field(min_length=1)]
    kind: Literal["claim", "identity", "ours"] = "claim"
    no_interval: str = ""
    ill_posed: str = ""

    @model_validator(mode="after")
    def _accept_has_the_direction(self) -> Self:
        if not self.direction.contains(self.accept.low, self.accept.high):
            raise ValueError(f"{self.id}: accept must lie inside direction")
        return self


class Change(BaseModel):
    """A change of a rule, quantity or evidence, recorded before the values were seen again.

    Attributes:
        date: when, ISO 8601.
        claims: ids it concerns; empty for all.
        change: what was changed.
        reason: why.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    date: datetime.date
    claims: tuple[str, ...] = ()
    change: Text
    reason: Text


class Registry(BaseModel):
    """All claims, in the order of the papers, and the history of the rules."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    history: tuple[Change, ...]
    claims: tuple[Claim, ...]

    @model_validator(mode="after")
    def _every_id_once(self) -> Self:
        ids = [claim.id for claim in self.claims]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"claims: {', '.join(twice)} given twice")
        return self


@cache
def load_registry() -> Registry:
    """``registry.yaml``, checked."""
    return Registry.model_validate(read_yaml(Path(__file__).with_suffix(".yaml")))


def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the papers."""
    return load_registry().claims
