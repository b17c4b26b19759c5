"""Prepare the samples of one data set, on which networks are trained and measured."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import RootModel

from spectral_laws.artifacts import write_arrays
from spectral_laws.cli import run
from spectral_laws.curvature.datasets.load import load_samples
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import parse_settings
from spectral_laws.settings.data import Data


class DataSettings(RootModel[Data]):
    """Settings of any kind of data set."""


def parse(text: str) -> DataSettings:
    """Settings from JSON."""
    return parse_settings(DataSettings, text)


_DATA = typer.Option(
    parser=parse, metavar="JSON", help="JSON object of one entry of curvature.data: dataset, sizes."
)


def main(
    data: Annotated[DataSettings, _DATA],
    output: Annotated[Path, typer.Option(help="File of arrays (.safetensors) to write.")],
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Load or generate training and test samples."""
    provenance = Provenance(data.model_dump(mode="json"), seed)
    write_arrays(load_samples(data.root, seed=seed).as_arrays(), output, provenance)


if __name__ == "__main__":
    run(main)
