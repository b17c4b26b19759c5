"""Train one network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import Provenance, write_arrays, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Model, Training
from spectral_laws.curvature.datasets import ImageData
from spectral_laws.curvature.networks import train_network


def main(
    model: Annotated[Model, settings_option(Model)],
    training: Annotated[Training, settings_option(Training)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the history.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    checkpoint: Annotated[Path, typer.Option(help="Weights (.safetensors) to write.")],
    history: Annotated[Path, typer.Option(help="Table (.parquet) to write: every epoch.")],
    scratch: Annotated[Path, typer.Option(help="Folder of resumable states.")] = Path("scratch"),
    replicate: Annotated[int, typer.Option(help="Which training, from 0.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Train one network, going on from its last finished epoch if it was interrupted."""
    settings = {"model": model.model_dump(), "training": training.model_dump()}
    place: dict[str, Any] = {"name": model_name, "replicate": replicate, "seed": seed}
    provenance = Provenance(settings | place, seed, device)
    data = ImageData.read(data_file)
    network = train_network(model, data, training, **place, device=device, scratch=scratch)
    write_arrays(network.arrays, checkpoint, provenance)
    write_table(network.history, history, provenance)
    network.training.discard_state()


if __name__ == "__main__":
    run(main)
