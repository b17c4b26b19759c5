"""Measure the directional curvatures of a batch of networks."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.spectra import measure_networks
from spectral_laws.curvature.training.checkpoints import read_networks
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import share
from spectral_laws.settings.curvature import Measurement, Model


def main(
    model: Annotated[Model, settings_option(Model)],
    measurement: Annotated[Measurement, settings_option(Measurement)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the tables.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    checkpoints: Annotated[Path, typer.Option(help="Weights written by train_model.")],
    spectra: Annotated[Path, typer.Option(help="Table (.parquet) of spectra to write.")],
    factors: Annotated[Path, typer.Option(help="Table (.parquet) of factors to write.")],
    halves: Annotated[bool, typer.Option(help="Also measure two halves of the batch.")] = False,
    label_smoothing: Annotated[float, typer.Option(help="Of the loss.", parser=share)] = 0.0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Measure curvature along the gradient's singular directions in every layer."""
    settings = {"model": model.model_dump(), "measurement": measurement.model_dump()}
    extra = {"name": model_name, "halves": halves, "label_smoothing": label_smoothing}
    provenance = Provenance(settings | extra, seed, device)
    tables = measure_networks(
        read_networks(checkpoints),
        Samples.read(data_file),
        model,
        measurement,
        name=model_name,
        seed=seed,
        halves=halves,
        label_smoothing=label_smoothing,
        device=device,
    )
    write_table(tables[0], spectra, provenance, "curvature/spectra")
    write_table(tables[1], factors, provenance, "curvature/factors")


if __name__ == "__main__":
    run(main)
