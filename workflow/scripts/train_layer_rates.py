"""Train a batch of replicates of one network with learning rates per layer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import Provenance, read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.layer_rates import NULLABLE_LAYER_RATES, train_layer_rates
from spectral_laws.settings.curvature import Model, RateVariants, Training


def main(
    model: Annotated[Model, settings_option(Model)],
    training: Annotated[Training, settings_option(Training)],
    layer_rates: Annotated[RateVariants, settings_option(RateVariants)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the table.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents, which has every s.")],
    output: Annotated[Path, typer.Option(help="Table (.parquet) to write: every training.")],
    scratch: Annotated[Path, typer.Option(help="Folder of resumable states.")] = Path("scratch"),
    first: Annotated[int, typer.Option(help="First training, from 0.", min=0)] = 0,
    last: Annotated[int, typer.Option(help="Last training.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Train with each exponent of the rates, going on from the last finished epoch."""
    parameters: dict[str, Any] = {"name": model_name, "first": first, "last": last}
    parameters |= {"model": model.model_dump(), "training": training.model_dump()}
    provenance = Provenance(parameters | {"layer_rates": layer_rates.model_dump()}, seed, device)
    trained = train_layer_rates(
        model,
        Samples.read(data_file),
        training,
        read_table(exponents),
        layer_rates,
        name=model_name,
        replicates=range(first, last + 1),
        seed=seed,
        device=device,
        scratch=scratch,
    )
    write_table(trained.table, output, provenance, nullable=NULLABLE_LAYER_RATES)
    trained.discard_states()


if __name__ == "__main__":
    run(main)
