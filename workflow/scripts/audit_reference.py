"""Audit the author's result files: the paper's text, their raw data, and our values."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.atomic import atomic_path
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.audit import table as audit
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import Intervals


def main(
    folder: Annotated[Path, typer.Option(help="Folder of the author's JSON files.")],
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    output: Annotated[Path, typer.Option(help="Parquet table to write.")],
    markdown: Annotated[Path, typer.Option(help="The same as Markdown.")],
    claims: Annotated[Path | None, typer.Option(help="CSV of claims.")] = None,
    experiments: Annotated[Path | None, typer.Option(help="Table of compare_models.")] = None,
) -> None:
    """Recompute what the author's files allow and set it beside the paper's text and ours."""
    files = {"folder": folder, "claims": claims, "experiments": experiments}
    parameters = {name: str(path) for name, path in files.items() if path}
    provenance = Provenance(parameters | {"intervals": intervals.model_dump()}, seed=seed)
    ours = audit.OurTables(
        claims=audit.read_claims(claims) if claims else None,
        experiments=read_table(experiments) if experiments else None,
        seed=seed,
        **intervals.model_dump(),
    )
    table = audit.audit_reference(folder, ours)
    write_table(table, output, provenance, "curvature/audit")
    with atomic_path(markdown) as temporary:
        temporary.write_text(audit.audit_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    run(main)
