"""Exponents of the test error from the sharp theory."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.error_exponents import tabulate_error_exponents
from spectral_laws.settings.recovery import ErrorExponents


def main(
    exponents: Annotated[ErrorExponents, settings_option(ErrorExponents)],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Fit the exponents for every gamma, width and draw of the signs."""
    provenance = Provenance({"exponents": exponents.model_dump(mode="json")}, seed)
    table = tabulate_error_exponents(exponents, seed=seed)
    write_table(table, output, provenance, "recovery/error_exponents")


if __name__ == "__main__":
    run(main)
