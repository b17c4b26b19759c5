"""Measure the directional curvatures of one network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import Provenance, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Measurement, Model
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.curvature.spectra import measure_spectra


def main(
    model: Annotated[Model, settings_option(Model)],
    measurement: Annotated[Measurement, settings_option(Measurement)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the table.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    checkpoint: Annotated[Path, typer.Option(help="Weights written by train_model.")],
    output: Annotated[Path, typer.Option(help="Table (.parquet) of spectra to write.")],
    replicate: Annotated[int, typer.Option(help="Which training, from 0.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Measure curvature along the gradient's singular directions in every layer."""
    settings = {"model": model.model_dump(), "measurement": measurement.model_dump()}
    place: dict[str, Any] = {"name": model_name, "replicate": replicate, "seed": seed}
    provenance = Provenance(settings | place, seed, device)
    data = ImageData.read(data_file)
    table = measure_spectra(checkpoint, data, model, measurement, **place, device=device)
    write_table(table, output, provenance)


if __name__ == "__main__":
    run(main)
