"""Fit alpha over windows of the singular directions of every layer."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.fits.windows import fit_windows
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import Intervals


def main(
    spectra: Annotated[Path, typer.Option(help="Parquet table of measured spectra.")],
    top_k: Annotated[int, typer.Option(help="Directions of the window top_k.", min=1)],
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    output: Annotated[Path, typer.Option(help="Parquet table of windows to write.")],
) -> None:
    """Fit alpha over the leading 5, 10 and top_k directions, all of them, and each quarter."""
    options = intervals.model_dump() | {"top_k": top_k}
    provenance = Provenance(parameters={"spectra": str(spectra)} | options, seed=seed)
    table = fit_windows(read_table(spectra), seed=seed, **options)
    write_table(table, output, provenance, "curvature/windows")


if __name__ == "__main__":
    run(main)
