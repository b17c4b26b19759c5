"""Train a batch of replicates of one network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.artifacts import write_arrays, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.checkpoints import pack_networks
from spectral_laws.curvature.training.networks import train_networks
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import replicates
from spectral_laws.settings.curvature import Model, Training


def main(
    model: Annotated[Model, settings_option(Model)],
    training: Annotated[Training, settings_option(Training)],
    model_name: Annotated[str, typer.Option(help="Name of the model, kept in the history.")],
    data_file: Annotated[Path, typer.Option(help="Arrays of prepare_data.")],
    checkpoints: Annotated[Path, typer.Option(help="Weights (.safetensors) to write.")],
    history: Annotated[Path, typer.Option(help="Table (.parquet) to write: every epoch.")],
    scratch: Annotated[Path, typer.Option(help="Folder of resumable states.")] = Path("scratch"),
    first: Annotated[int, typer.Option(help="First training, from 0.", min=0)] = 0,
    last: Annotated[int, typer.Option(help="Last training.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Train networks, going on from the last finished epoch if it was interrupted."""
    settings = {"model": model.model_dump(), "training": training.model_dump()}
    place: dict[str, Any] = {"name": model_name, "first": first, "last": last}
    provenance = Provenance(settings | place, seed, device)
    trained = train_networks(
        model,
        Samples.read(data_file),
        training,
        name=model_name,
        replicates=replicates(first, last),
        seed=seed,
        device=device,
        scratch=scratch,
    )
    write_arrays(pack_networks(trained.networks), checkpoints, provenance)
    write_table(trained.history, history, provenance, "curvature/history")
    trained.discard_states()


if __name__ == "__main__":
    run(main)
