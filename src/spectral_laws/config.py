"""The configuration: typed, frozen, and checked as a whole before anything runs.

``config.yaml`` is complete; a file under ``config/`` holds only what differs and is merged over
it, key by key. A ``null`` in one of the ``REMOVABLE`` mappings removes an inherited entry.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from spectral_laws.errors import ConfigError
from spectral_laws.settings.base import (
    Intervals,
    Settings,
    check_known,
    parse_settings,
    smallest_batch,
)
from spectral_laws.settings.curvature import Curvature
from spectral_laws.settings.layer_names import has_layer
from spectral_laws.settings.optimizers import Optimizers
from spectral_laws.settings.recovery import Recovery
from spectral_laws.settings.yaml_files import read_yaml

REMOVABLE = (
    ("recovery", "studies"),
    ("recovery", "perturbation"),
    ("curvature", "models"),
    ("curvature", "experiments"),
    ("optimizers", "races"),
    ("optimizers", "methods"),
)
"""Sections and their mappings in which null removes an entry."""


class Config(Settings):
    """The whole configuration of one preset."""

    preset: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=100)]
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    device: Literal["cpu", "cuda"]
    intervals: Intervals
    recovery: Recovery
    curvature: Curvature
    optimizers: Optimizers

    @model_validator(mode="after")
    def _races_have_models(self) -> Self:
        for name, race in self.optimizers.races.items():
            where = f"optimizers.races.{name}"
            check_known(f"{where}.model", race.model, self.curvature.models)
            model = self.curvature.models[race.model]
            if model.weights is not None:
                raise ValueError(f"{where}.model: {race.model!r} has weights, it is not trained")
            held = self.curvature.data[model.data].train_size
            if race.train_size + race.validation_size > held:
                raise ValueError(
                    f"{where}: train_size {race.train_size} and validation_size "
                    f"{race.validation_size} are more than curvature.data.{model.data}.train_size "
                    f"{held}"
                )
            alone = smallest_batch(race.train_size, race.batch_size) < 2
            if alone and model.normaliser == "batch":
                raise ValueError(
                    f"{where}: batch_size {race.batch_size} leaves a batch of one sample of "
                    f"train_size {race.train_size}, and {race.model!r} has batch norm"
                )
        return self

    @model_validator(mode="after")
    def _responses_have_layers(self) -> Self:
        race = self.optimizers.races[self.optimizers.responses.race]
        model = self.curvature.models.get(race.model)
        for layer in self.optimizers.responses.layers:
            if model is not None and not has_layer(model, layer):
                raise ValueError(
                    f"optimizers.responses.layers: {race.model!r} has no layer {layer!r} with a "
                    "matrix"
                )
        return self


def load_config(*paths: Path) -> Config:
    """Read YAML files, merge later ones over earlier ones, and check the result.

    Raises:
        ConfigError: if a file cannot be read, or a key or value is wrong.
    """
    return parse_config(read_files(*paths), source=" + ".join(str(path) for path in paths))


def read_files(*paths: Path) -> dict[str, Any]:
    """Read YAML files strictly (see ``settings.yaml_files``), merge later over earlier ones.

    The Snakefile calls this beside Snakemake's own reading, which is not strict.

    Raises:
        ConfigError: if a file cannot be read, holds more than plain values, or removes an entry
            that the files before it do not have.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        try:
            merged = merge(merged, read_yaml(path))
        except KeyError as error:
            raise ConfigError(f"{path}: {error.args[0]}") from None
    return merged


def load_preset(name: str, root: Path) -> Config:
    """The preset ``name`` of the project in ``root``.

    It is ``config.yaml`` itself, or that file with ``config/<name>.yaml`` merged over it.

    Raises:
        ConfigError: if there is no such preset, or it is wrong.
    """
    base, overlay = root / "config.yaml", root / "config" / f"{name}.yaml"
    config = load_config(base, overlay) if overlay.exists() else load_config(base)
    if config.preset != name:
        known = sorted({load_config(base).preset, *(p.stem for p in overlay.parent.glob("*.yaml"))})
        raise ConfigError(f"{name!r} is not a preset; there are {', '.join(known)}")
    return config


def parse_config(raw: Mapping[str, Any], *, source: str) -> Config:
    """Check a merged mapping.

    Raises:
        ConfigError: naming ``source`` and, per mistake, the key, the value and what is allowed.
    """
    cleaned = dict(raw)
    for section, mapping in REMOVABLE:
        inner = cleaned.get(section)
        if isinstance(inner, Mapping) and isinstance(inner.get(mapping), Mapping):
            kept = {name: value for name, value in inner[mapping].items() if value is not None}
            cleaned[section] = {**inner, mapping: kept}
    try:
        text = json.dumps(cleaned)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: only plain YAML values are allowed ({error})") from None
    return parse_settings(Config, text, source=source)


def merge(
    base: Mapping[str, Any], over: Mapping[str, Any], *, inside: tuple[str, ...] = ()
) -> dict[str, Any]:
    """``base`` with the keys of ``over`` put in, mappings merged key by key.

    Raises:
        KeyError: if a null should remove an entry that ``base`` does not have; ``inside`` are the
            keys that led here.
    """
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            result[key] = merge(known, value, inside=(*inside, key))
        elif value is None and key not in base and inside in REMOVABLE:
            raise KeyError(
                f"{'.'.join((*inside, key))}: null removes an inherited entry, and there is none "
                f"of this name; there are {', '.join(base)}"
            )
        else:
            result[key] = value
    return result
