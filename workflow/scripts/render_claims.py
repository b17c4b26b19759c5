"""Render the measurements of all claims for people."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.claims.render import write_claims
from spectral_laws.cli import run
from spectral_laws.tables.schemas import check_table


def main(
    claims: Annotated[Path, typer.Option(help="Table of evaluate_claims.")],
    preset: Annotated[str, typer.Option(help="Whose claims; the page's links lead to its files.")],
    csv: Annotated[Path, typer.Option(help="All rows beside the registry's texts.")],
    markdown: Annotated[Path, typer.Option(help="Verdicts, all rows, rules and their history.")],
    html: Annotated[Path, typer.Option(help="Page of the report, in results/<preset>.")],
) -> None:
    """Write the claims as CSV, Markdown and a page with links to figures, tables and code."""
    table = read_table(claims)
    check_table(table, "claims/claim_measurements")
    write_claims(table, preset, csv=csv, markdown=markdown, html=html)


if __name__ == "__main__":
    run(main)
