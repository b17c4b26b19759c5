"""What all settings share: strict, frozen models, and how a wrong one is reported."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from spectral_laws.errors import ConfigError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

_SHOWN = 3  # mistakes that are listed; studies that share an anchor share their mistakes

Parsed = TypeVar("Parsed", bound=BaseModel)


class Settings(BaseModel):
    """Base of all settings: no unknown keys, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def check_distinct(name: str, values: Sequence[object]) -> None:
    """Refuse a list with a repeated value (ValueError, which pydantic reports with its key)."""
    if len(set(values)) < len(values):
        raise ValueError(f"{name} {list(values)} has a value twice")


class Intervals(Settings):
    """Bootstrap intervals."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    resamples: Annotated[int, Field(ge=100)]


def parse_settings(model: type[Parsed], text: str, *, source: str = "") -> Parsed:
    """Validate a JSON object as ``model``.

    Raises:
        ConfigError: one line per mistake, with the key's path.
    """
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
    if isinstance(mistake["input"], str) and re.fullmatch(r"\d+e[+-]?\d+", mistake["input"]):
        message += " (YAML reads a number with an exponent only with a dot, as in 1.0e-4)"
    if isinstance(mistake["input"], Mapping):
        return f"{where}: {message}"
    return f"{where}: {message}, found {mistake['input']!r}"
