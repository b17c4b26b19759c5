"""Train a batch of replicates of one tuned method of a race."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.optimizers.race import Task, train_method
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining


def main(
    race_name: Annotated[str, typer.Option(help="Name of the race.")],
    method_name: Annotated[str, typer.Option(help="Name of the method.")],
    model_name: Annotated[str, typer.Option(help="Name of the model, in the exponents.")],
    training: Annotated[RaceTraining, settings_option(RaceTraining)],
    method: Annotated[Method, settings_option(Method)],
    model: Annotated[Model, settings_option(Model)],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    tuning: Annotated[Path, typer.Option(help="Table of tune_method.")],
    output: Annotated[Path, typer.Option(help="Table (.parquet) to write: every epoch.")],
    times: Annotated[Path, typer.Option(help="Table (.parquet) to write: seconds of each.")],
    exponents: Annotated[Path | None, typer.Option(help="Table of fit_exponents.")] = None,
    scratch: Annotated[Path, typer.Option(help="Folder of finished trainings.")] = Path("scratch"),
    seeds: Annotated[int, typer.Option(help="Trainings.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Train from every seed, going on from the last finished training."""
    parameters: dict[str, Any] = {"race": race_name, "name": method_name, "model_name": model_name}
    parameters |= {"training": training.model_dump(), "method": method.model_dump()}
    parameters |= {"model": model.model_dump(), "seeds": seeds}
    provenance = Provenance(parameters, seed, device)
    task = Task(
        race_name, model, model_name, Samples.read(data_file), training, seed, device, scratch
    )
    measured = None if exponents is None else read_table(exponents)
    tuned, replicates = read_table(tuning), range(seeds)
    done = train_method(task, method, tuned, measured, name=method_name, replicates=replicates)
    write_table(done.table, output, provenance, "optimizers/race")
    write_table(done.times, times, provenance, "optimizers/race_times")
    done.discard()


if __name__ == "__main__":
    run(main)
