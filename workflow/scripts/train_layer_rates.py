"""Train the replicates of one race with learning rates per layer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.optimizers.layer_rates import train_layer_rates
from spectral_laws.optimizers.race import Task
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining, RateVariants


def main(
    race_name: Annotated[str, typer.Option(help="Name of the race.")],
    model_name: Annotated[str, typer.Option(help="Name of the model, in the exponents.")],
    training: Annotated[RaceTraining, settings_option(RaceTraining)],
    method: Annotated[Method, settings_option(Method)],
    layer_rates: Annotated[RateVariants, settings_option(RateVariants)],
    model: Annotated[Model, settings_option(Model)],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    history: Annotated[Path, typer.Option(help="Table of train_method, of the same method.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents, which has every s.")],
    output: Annotated[Path, typer.Option(help="Table (.parquet) to write: every training.")],
    scratch: Annotated[Path, typer.Option(help="Folder of finished trainings.")] = Path("scratch"),
    seeds: Annotated[int, typer.Option(help="Trainings.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Train with each exponent of the rates, going on from the last finished training."""
    parameters: dict[str, Any] = {"race": race_name, "model_name": model_name, "seeds": seeds}
    parameters |= {"training": training.model_dump(), "method": method.model_dump()}
    parameters |= {"layer_rates": layer_rates.model_dump(), "model": model.model_dump()}
    provenance = Provenance(parameters, seed, device)
    task = Task(
        race_name, model, model_name, Samples.read(data_file), training, seed, device, scratch
    )
    tables = read_table(history), read_table(exponents)
    done = train_layer_rates(task, method, *tables, layer_rates, replicates=range(seeds))
    write_table(done.table, output, provenance, "optimizers/layer_rates")
    done.discard()


if __name__ == "__main__":
    run(main)
