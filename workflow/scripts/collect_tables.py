"""Concatenate the tables of many jobs into one."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from pandas.api.types import is_numeric_dtype

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run
from spectral_laws.errors import DataError
from spectral_laws.provenance import Provenance


def main(
    tables: Annotated[list[Path], typer.Argument(help="Parquet tables with the same columns.")],
    output: Annotated[Path, typer.Option(help="Parquet table to write.")],
) -> None:
    """Concatenate tables, in the order given."""
    provenance = Provenance(parameters={"tables": [str(path) for path in tables]})
    parts = [read_table(path) for path in tables]
    kinds: dict[str, pd.Series] = {}
    for path, part in zip(tables, parts, strict=True):
        if list(part.columns) != list(parts[0].columns):
            raise DataError(f"{path}: other columns than {tables[0]}; they are no parts of a table")
        for name in part.columns[part.notna().any()]:
            if is_numeric_dtype(part[name]) != is_numeric_dtype(kinds.setdefault(name, part[name])):
                raise DataError(f"{path}: column {name} holds another kind of value than before")
    table = pd.concat(parts, ignore_index=True)
    # A missing value may stay where the job that made the table allowed it.
    nullable = tuple(str(name) for name in table if any(part[name].isna().any() for part in parts))
    write_table(table, output, provenance, nullable=nullable)


if __name__ == "__main__":
    run(main)
