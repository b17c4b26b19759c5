"""What all settings share: strict, frozen models, and how a wrong one is reported."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from spectral_laws.errors import ConfigError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST = 2**31 - 1
"""Of any whole number: more samples, steps or units fit no machine."""
Count = Annotated[int, Field(ge=1, le=MOST)]
Repeats = Annotated[int, Field(ge=1, le=10_000)]
"""Trainings or teachers: each is work of its own, and more would not be one run."""
Noise = Annotated[float, Field(ge=0, le=1e6)]
"""A standard deviation whose square is a number in float32, beside a signal of 1."""

_FOUND = 200  # characters of a wrong value that are shown
_LONGEST_NAME = 255  # bytes of a file's name on every usual file system
_EXPONENT = re.compile(r"[-+]?[\d.]+[eE][-+]?\d+")
_SHOWN = 3  # mistakes that are listed; studies that share an anchor share their mistakes

Parsed = TypeVar("Parsed", bound=BaseModel)


def _check_path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("a path is at least one character, none of them NUL")
    if any(len(part.encode()) > _LONGEST_NAME for part in text.split("/")):
        raise ValueError(f"a name in a path has at most {_LONGEST_NAME} bytes")
    return text


PathText = Annotated[str, AfterValidator(_check_path)]
"""A file or folder, which need not exist."""


class Settings(BaseModel):
    """Base of all settings: no unknown keys, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _check_distinct(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(set(values)) < len(values):
        raise ValueError("has a value twice")
    return values


DISTINCT = AfterValidator(_check_distinct)
"""Annotates a list without a repeated value."""


def check_known(where: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is none of those known (ValueError, which pydantic reports)."""
    if name not in known:
        raise ValueError(f"{where}: {name!r} is none of {[*known]}")


def smallest_batch(size: int, batch_size: int) -> int:
    """Samples of the smallest batch when ``size`` are cut into nearly equal batches."""
    return size // -(-size // batch_size)


def replicates(first: int, last: int) -> range:
    """The numbers ``first`` to ``last``."""
    if last < first:
        raise ConfigError(f"--last {last} is below --first {first}")
    return range(first, last + 1)


def share(text: str) -> float:
    """A number from 0 on below 1, from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise ConfigError(f"{text} is no number from 0 on below 1")
    return value


class Intervals(Settings):
    """Bootstrap intervals."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    resamples: Annotated[int, Field(ge=100, le=10**6)]


def parse_settings(model: type[Parsed], text: str, *, source: str = "") -> Parsed:
    """Validate a JSON object as ``model``."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        lines = [_explain(mistake) for mistake in error.errors(include_url=False)]
    head = f"{source}: " if source else ""
    shown = lines[:_SHOWN]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    raise ConfigError(f"{head}{len(lines)} wrong setting(s)\n  " + "\n  ".join(shown))


def _explain(mistake: Mapping[str, Any]) -> str:
    # Entries of curvature.data are told apart by their dataset, which pydantic puts into the path.
    path = [str(part) for part in mistake["loc"]]
    if path[:2] == ["curvature", "data"]:
        path[3:4] = []
    where = ".".join(path) or "(top level)"
    if mistake["type"] == "extra_forbidden":
        return f"{where}: unknown key"
    if mistake["type"] == "missing":
        return f"{where}: missing"
    message = mistake["msg"].removeprefix("Value error, ")
    if isinstance(mistake["input"], str) and _EXPONENT.fullmatch(mistake["input"]):
        message += " (YAML wants a dot and a sign beside an exponent, as in 1.0e-4 and 1.5e+3)"
    if isinstance(mistake["input"], Mapping):
        return f"{where}: {message}"
    found = repr(mistake["input"])
    return f"{where}: {message}, found {found if len(found) <= _FOUND else found[:_FOUND] + '...'}"
