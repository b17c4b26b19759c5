"""Set the exponents of every experiment's networks side by side."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.experiments import (
    Comparison,
    tabulate_experiments,
)
from spectral_laws.provenance import Provenance


def main(
    comparison: Annotated[Comparison, settings_option(Comparison)],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    decomposition: Annotated[Path, typer.Option(help="Decomposition table of fit_ladder.")],
    output: Annotated[Path, typer.Option(help="Parquet table of experiments to write.")],
) -> None:
    """Tabulate every experiment: what its networks differ in, and their exponents."""
    files = {"exponents": str(exponents), "decomposition": str(decomposition)}
    provenance = Provenance(parameters=files | {"comparison": comparison.model_dump(mode="json")})
    table = tabulate_experiments(
        comparison.experiments,
        comparison.models,
        n_classes=comparison.n_classes(),
        tasks=comparison.tasks(),
        exponents=read_table(exponents),
        decomposition=read_table(decomposition),
    )
    write_table(table, output, provenance, "curvature/experiments")


if __name__ == "__main__":
    run(main)
