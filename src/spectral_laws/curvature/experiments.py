"""Networks of an experiment side by side: what differs, and the exponents that came of it."""

from collections.abc import Mapping
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from spectral_laws.curvature.fits.layer_tables import require_columns
from spectral_laws.errors import ConfigError, DataError
from spectral_laws.settings.base import Name, Settings
from spectral_laws.settings.curvature import Experiment, Model
from spectral_laws.settings.data import Data, n_classes_of, task_of
from spectral_laws.tables.schemas import load_schema

_KEY = ["model", "seed", "layer_index", "layer"]
_ROWS = ["model", "seed", "epoch", "final", "layer_index", "layer", "kind", "role"]
_FITS = ["status", "reason", "alpha", "gamma", "s", "participation_ratio", "rank_model"]
_SLOPES = ["phi_a", "phi_delta"]


class Comparison(Settings):
    """The part of the configuration that says which networks are compared, and how they differ."""

    experiments: dict[Name, Experiment]
    models: dict[Name, Model]
    data: dict[Name, Data]

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, experiment in self.experiments.items():
            for model in experiment.models:
                if model not in self.models:
                    raise ValueError(f"experiments.{name}: {model!r} is none of {[*self.models]}")
                data = self.models[model].data
                if data not in self.data:
                    raise ValueError(f"models.{model}.data: {data!r} is none of {[*self.data]}")
        return self

    def n_classes(self) -> dict[str, int]:
        """Classes of each data set whose settings tell their number; a text's do not."""
        return {name: count for name, data in self.data.items() if (count := n_classes_of(data))}

    def tasks(self) -> dict[str, str]:
        """Task of each data set: classification or language_modelling."""
        return {name: task_of(data) for name, data in self.data.items()}


def tabulate_experiments(
    experiments: Mapping[str, Experiment],
    models: Mapping[str, Model],
    *,
    n_classes: Mapping[str, int],
    tasks: Mapping[str, str],
    exponents: pd.DataFrame,
    decomposition: pd.DataFrame,
) -> pd.DataFrame:
    """Exponents and alignment slopes of every experiment's networks, beside what they differ in.

    ``n_classes`` and ``tasks`` are by name of data set; ``exponents`` and ``decomposition`` are the
    tables of ``fit_exponents`` and ``fit_decomposition``. Models stand in the experiment's order;
    it is a ConfigError if all have the same value of what is compared, or lack it.

    Source: curvature paper, section 6 and experiments 2, 3 and 8.
    """
    require_columns(exponents, [*_ROWS, *_FITS], name="exponents")
    require_columns(decomposition, [*_KEY, *_SLOPES], name="decomposition")
    slopes = decomposition[[*_KEY, *_SLOPES]].assign(final=True)
    rows = exponents[[*_ROWS, *_FITS]].assign(final=exponents["final"].astype(bool))
    rows = rows.merge(slopes, on=[*_KEY, "final"], how="left", validate="many_to_one")
    parts: list[pd.DataFrame] = []
    for name, experiment in experiments.items():
        values = {
            model: _attribute(experiment.over, models[model], f"{name} ({model})", n_classes, tasks)
            for model in experiment.models
        }
        if len(set(values.values())) < 2:
            raise ConfigError(
                f"experiments.{name}: {experiment.over} of {', '.join(values)} is "
                f"{next(iter(values.values()))} throughout; there is nothing to compare"
            )
        for model, value in values.items():
            own = rows[rows["model"] == model]
            if own.empty:
                raise DataError(f"exponents table: no row of {model} (experiments.{name})")
            parts.append(
                own.assign(
                    experiment=name,
                    over=experiment.over,
                    variant=_text(value),
                    value=float("nan") if isinstance(value, str | bool) else float(value),
                )
            )
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return load_schema("curvature/experiments").frame(whole)


def _attribute(
    over: str, model: Model, where: str, n_classes: Mapping[str, int], tasks: Mapping[str, str]
) -> Any:  # noqa: ANN401  (text, truth or number, as the attribute is)
    """The value of the compared attribute."""
    if over == "n_classes":
        if model.data not in n_classes:
            raise ConfigError(
                f"experiments.{where}: the number of classes of data {model.data!r} is not known"
            )
        return n_classes[model.data]
    if over == "task":
        return tasks[model.data]
    value = model.normaliser if over == "normalisation" else getattr(model, over)
    if value is None:
        raise ConfigError(f"experiments.{where}: {model.architecture} has no {over}")
    return value


def _text(value: object) -> str:
    """The variant as it is written in the configuration."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
