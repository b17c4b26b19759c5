"""Write the claims table as the page on which the report opens."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.claims.page import write_page
from spectral_laws.cli import run


def main(
    claims: Annotated[Path, typer.Option(help="Table of evaluate_claims.")],
    preset: Annotated[str, typer.Option(help="Whose claims; the links lead to its files.")],
    output: Annotated[Path, typer.Option(help="HTML page to write, in results/<preset>.")],
) -> None:
    """Write one row per claim, with links to its figures, tables, rules and code."""
    write_page(read_table(claims), preset, output)


if __name__ == "__main__":
    run(main)
