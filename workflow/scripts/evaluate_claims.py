"""Judge every claim of both papers by what was measured."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.report import write_claims
from spectral_laws.claims.tables import COLUMNS, read_claim_tables
from spectral_laws.cli import run, settings_option
from spectral_laws.settings.base import Intervals

TABLES = f"Measured tables, each file named after its table: {', '.join(COLUMNS)}."


def main(
    tables: Annotated[list[Path], typer.Argument(help=TABLES)],
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    csv: Annotated[Path, typer.Option(help="CSV to write.")],
    markdown: Annotated[Path, typer.Option(help="Markdown to write.")],
) -> None:
    """Write the claims table; claims whose tables are not given are reported as not run."""
    measured = read_claim_tables(tables)
    table = evaluate_claims(measured, **intervals.model_dump(), seed=seed)
    write_claims(table, csv=csv, markdown=markdown)


if __name__ == "__main__":
    run(main)
