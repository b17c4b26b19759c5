"""Concatenate the tables of many jobs into one."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema


def main(
    tables: Annotated[list[Path], typer.Argument(help="Parquet tables of one schema.")],
    schema: Annotated[str, typer.Option(help="Its name, e.g. recovery/metrics.")],
    output: Annotated[Path, typer.Option(help="Parquet table to write.")],
) -> None:
    """Concatenate tables, in the order given."""
    provenance = Provenance(parameters={"tables": [str(path) for path in tables]})
    parts = [read_table(path) for path in tables]
    for path, part in zip(tables, parts, strict=True):
        load_schema(schema).check(part, source=path)
    write_table(pd.concat(parts, ignore_index=True), output, provenance, schema)


if __name__ == "__main__":
    run(main)
