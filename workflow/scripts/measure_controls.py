"""Measure what stands beside the directional curvatures of one model."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.controls.measure import measure_controls
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.checkpoints import read_networks
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import share
from spectral_laws.settings.curvature import ControlSettings, Measurement, Model


def main(
    model: Annotated[Model, settings_option(Model)],
    measurement: Annotated[Measurement, settings_option(Measurement)],
    controls: Annotated[ControlSettings, settings_option(ControlSettings)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the tables.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    checkpoints: Annotated[Path, typer.Option(help="Weights written by train_model.")],
    eigenvalues: Annotated[Path, typer.Option(help="Table (.parquet) of eigenvalues to write.")],
    differences: Annotated[Path, typer.Option(help="Table of finite differences to write.")],
    label_smoothing: Annotated[float, typer.Option(help="Of the loss.", parser=share)] = 0.0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Leading Hessian eigenvalues by Lanczos, and central differences of float32 gradients."""
    settings = {"model": model.model_dump(), "measurement": measurement.model_dump()}
    extra = {"name": model_name, "controls": controls.model_dump()}
    provenance = Provenance(settings | extra, seed, device)
    tables = measure_controls(
        read_networks(checkpoints),
        Samples.read(data_file),
        model,
        measurement,
        controls,
        name=model_name,
        seed=seed,
        label_smoothing=label_smoothing,
        device=device,
    )
    write_table(tables[0], eigenvalues, provenance, "curvature/eigenvalues")
    write_table(tables[1], differences, provenance, "curvature/finite_differences")


if __name__ == "__main__":
    run(main)
