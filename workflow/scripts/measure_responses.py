"""Measure the update spectra T(sigma) of all methods of a race on one gradient."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.optimizers.race import Task
from spectral_laws.optimizers.responses import measure_responses
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import RaceTraining, ResponseSettings


def main(
    race_name: Annotated[str, typer.Option(help="Name of the race.")],
    model_name: Annotated[str, typer.Option(help="Name of the model, in the exponents.")],
    training: Annotated[RaceTraining, settings_option(RaceTraining)],
    responses: Annotated[ResponseSettings, settings_option(ResponseSettings)],
    model: Annotated[Model, settings_option(Model)],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    output: Annotated[Path, typer.Option(help="Table (.parquet) to write: every direction.")],
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Give every method the same gradient, and project its update on the gradient's directions."""
    parameters: dict[str, Any] = {"race": race_name, "model_name": model_name}
    parameters |= {"training": training.model_dump(), "responses": responses.model_dump()}
    provenance = Provenance(parameters | {"model": model.model_dump()}, seed, device)
    task = Task(race_name, model, model_name, Samples.read(data_file), training, seed, device)
    table = measure_responses(task, read_table(exponents), responses)
    write_table(table, output, provenance, "optimizers/responses")


if __name__ == "__main__":
    run(main)
