"""Judge every claim of both papers by what was measured."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.report import write_claims
from spectral_laws.claims.tables import read_claim_tables
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Intervals


def main(
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    csv: Annotated[Path, typer.Option(help="CSV to write.")],
    markdown: Annotated[Path, typer.Option(help="Markdown to write.")],
    metrics: Annotated[Path | None, typer.Option(help="Recovery: test errors.")] = None,
    directions: Annotated[Path | None, typer.Option(help="Recovery: overlaps.")] = None,
    thresholds: Annotated[Path | None, typer.Option(help="Recovery: half-recovery sizes.")] = None,
    baselines: Annotated[Path | None, typer.Option(help="Recovery: other methods.")] = None,
    perturbation: Annotated[Path | None, typer.Option(help="Recovery: perturbations.")] = None,
    error_exponents: Annotated[Path | None, typer.Option(help="Recovery: sharp theory.")] = None,
    exponents: Annotated[Path | None, typer.Option(help="Curvature: exponents.")] = None,
) -> None:
    """Write the claims table; claims whose tables are not given are reported as not run."""
    tables = read_claim_tables(
        metrics=metrics,
        directions=directions,
        thresholds=thresholds,
        baselines=baselines,
        perturbation=perturbation,
        error_exponents=error_exponents,
        exponents=exponents,
    )
    table = evaluate_claims(tables, **intervals.model_dump(), seed=seed)
    write_claims(table, csv=csv, markdown=markdown)


if __name__ == "__main__":
    run(main)
