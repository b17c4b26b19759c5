"""Compute what is recovered from infinitely many samples with true features of degree 2."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.population import tabulate_population
from spectral_laws.settings.recovery import Population


def main(
    population: Annotated[Population, settings_option(Population)],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Compute the eigenvectors of the population moment matrix at each dimension and seed."""
    provenance = Provenance({"population": population.model_dump(mode="json")}, seed)
    table = tabulate_population(population, seed=seed)
    write_table(table, output, provenance, "recovery/population")


if __name__ == "__main__":
    run(main)
