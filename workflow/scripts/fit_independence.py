"""Test s = alpha gamma on disjoint halves of the batch and on shuffled curvatures."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run
from spectral_laws.curvature.fits.independence import fit_independence
from spectral_laws.provenance import Provenance


def main(
    spectra: Annotated[Path, typer.Option(help="Parquet table of measured spectra.")],
    top_k: Annotated[int, typer.Option(help="Leading directions that enter the fits.", min=1)],
    permutations: Annotated[int, typer.Option(help="Shuffles of each layer.", min=1)],
    seed: Annotated[int, typer.Option(help="Root seed of the shuffles.", min=0)],
    output: Annotated[Path, typer.Option(help="Parquet table of errors to write.")],
) -> None:
    """Fit every layer's three exponents on halves of the batch, and on shuffled curvatures."""
    parameters = {"spectra": str(spectra), "top_k": top_k, "permutations": permutations}
    provenance = Provenance(parameters=parameters, seed=seed)
    table = fit_independence(read_table(spectra), top_k=top_k, permutations=permutations, seed=seed)
    write_table(table, output, provenance, "curvature/independence")


if __name__ == "__main__":
    run(main)
