"""Fit the decay and the power-law tail of the weights of trained networks."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run
from spectral_laws.curvature.fits.weight_tails import fit_weight_tails
from spectral_laws.curvature.training.checkpoints import last_epochs, read_networks
from spectral_laws.errors import ConfigError
from spectral_laws.provenance import Provenance


def main(
    networks: Annotated[list[Path], typer.Option(help="Files of trained networks; repeatable.")],
    model_name: Annotated[list[str], typer.Option(help="Model of each file, in the same order.")],
    spectra: Annotated[Path, typer.Option(help="Parquet table of measured spectra.")],
    output: Annotated[Path, typer.Option(help="Parquet table of tails to write.")],
) -> None:
    """Fit the weights of every measured layer, at the last epoch of every training."""
    if len(networks) != len(model_name):
        raise ConfigError("--networks and --model-name must be given equally often")
    files = [str(path) for path in networks]
    provenance = Provenance(parameters={"networks": files, "spectra": str(spectra)})
    weights = {
        (name, seed): trained[seed, epoch]
        for path, name in zip(networks, model_name, strict=True)
        for trained in (read_networks(path),)
        for seed, epoch in last_epochs(trained).items()
    }
    table = fit_weight_tails(weights, read_table(spectra))
    write_table(table, output, provenance, "curvature/weights")


if __name__ == "__main__":
    run(main)
