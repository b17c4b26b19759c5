"""Judge every claim of both papers by what was measured."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.report import write_claims
from spectral_laws.claims.tables import NAMES, read_claim_tables
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import Intervals

TABLES = f"Measured tables, each file named after its table: {', '.join(NAMES)}."


def main(
    tables: Annotated[list[Path], typer.Argument(help=TABLES)],
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    parquet: Annotated[Path, typer.Option(help="Table (.parquet) to write.")],
    csv: Annotated[Path, typer.Option(help="The same as CSV.")],
    markdown: Annotated[Path, typer.Option(help="The same for people, as Markdown.")],
) -> None:
    """Write the claims table; claims whose tables are not given are reported as not run."""
    provenance = Provenance({"intervals": intervals.model_dump()}, seed)
    measured = read_claim_tables(tables)
    table = evaluate_claims(measured, **intervals.model_dump(), seed=seed)
    write_claims(table, parquet=parquet, csv=csv, markdown=markdown, provenance=provenance)


if __name__ == "__main__":
    run(main)
