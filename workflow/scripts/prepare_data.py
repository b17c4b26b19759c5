"""Prepare the images on which networks are trained."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import Provenance, write_arrays
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Data
from spectral_laws.curvature.datasets import load_images


def main(
    data: Annotated[Data, settings_option(Data)],
    output: Annotated[Path, typer.Option(help="File of arrays (.safetensors) to write.")],
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Draw, resize and standardise training and test images."""
    provenance = Provenance(data.model_dump(mode="json"), seed)
    write_arrays(load_images(data, seed=seed).as_arrays(), output, provenance)


if __name__ == "__main__":
    run(main)
