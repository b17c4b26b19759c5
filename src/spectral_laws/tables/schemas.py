"""The schemas of all tables, from the YAML files beside this module, and checks against them.

A file ``<room>.yaml`` has the tables of a room (``recovery``, ``curvature``, ...). A column is one
line, ``name: dtype | unit | meaning``; a ``?`` behind the dtype says that a value may be missing,
where the meaning says so. Columns of several tables stand under ``shared`` and are named in a list,
``- model, seed, epoch``. The order is that of the file.

Schemas check tables and describe them, but no number is made from them. So these files are no
``input.source`` of the rules that write tables: an edited meaning reruns nothing, an edited column
comes with the code that writes it, and ``make verify`` compares the tables on disk with them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import yaml
from pandas.api.types import infer_dtype
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from spectral_laws.errors import DataError

ROOMS = ("recovery", "curvature", "optimizers", "claims")

Text = Annotated[str, StringConstraints(min_length=1)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Entry):
    """One column of a table.

    Attributes:
        name: as in the file.
        dtype: pandas' name of the type that a reader sees.
        nullable: whether a value may be missing; ``meaning`` says where.
        unit: ``-`` where there is none.
        meaning: what the numbers are.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    dtype: Literal["int64", "Int64", "float64", "bool", "str"]
    nullable: bool
    unit: Text
    meaning: Text

    def holds(self, values: "pd.Series[Any]") -> bool:
        """Whether ``values`` have this type; text and truths with gaps are objects in pandas."""
        if str(values.dtype) == self.dtype:
            return True
        objects = {"str": ("string", "empty"), "bool": ("boolean", "empty")}.get(self.dtype, ())
        return values.dtype == object and infer_dtype(values, skipna=True) in objects


class Schema(_Entry):
    """One table.

    Attributes:
        name: ``room/table``, its path below ``results/<preset>`` if it is a product.
        meaning: what the table shows.
        row: what a row is about.
        rule: the rule that computes it; another may collect it from many jobs.
        product: whether every run writes it.
        columns: in order.
    """

    name: Text
    meaning: Text
    row: Text
    rule: Text
    product: bool = True
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def nullable(self) -> list[str]:
        """Names of the columns in which a value may be missing."""
        return [column.name for column in self.columns if column.nullable]

    def frame(self, rows: pd.DataFrame | Sequence[Mapping[str, object]]) -> pd.DataFrame:
        """Rows as this table: its columns in order, and numbers float64 even if all are missing."""
        floats = [column.name for column in self.columns if column.dtype == "float64"]
        return pd.DataFrame(rows, columns=self.names).astype(dict.fromkeys(floats, "float64"))

    def check(self, table: pd.DataFrame, *, source: Path | None = None) -> None:
        """Refuse a table that is not exactly this one: names, order, types, missing values.

        Raises:
            DataError: naming table, columns and the file it is from.
        """
        self.require(table, source=source)
        fault = ""
        if extra := [str(name) for name in table.columns if name not in self.names]:
            fault = f"column {', '.join(extra)} is not in its schema"
        elif list(table.columns) != self.names:
            fault = "its columns are in another order than in its schema"
        for column in self.columns if len(table) and not fault else ():
            values = table[column.name]
            if not column.nullable and values.isna().any():
                fault = f"column {column.name} has missing values"
            elif not column.holds(values):
                fault = f"column {column.name} is {values.dtype}, not {column.dtype}"
        if fault:
            raise DataError(f"{self._where(source)}: {fault}")

    def require(self, table: pd.DataFrame, *, source: Path | None = None) -> None:
        """Refuse a table without all of these columns; it may have others.

        Raises:
            DataError: naming table, columns and the file it is from.
        """
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise DataError(f"{self._where(source)}: no column {', '.join(missing)}")

    def _where(self, source: Path | None) -> str:
        return f"{self.name} table" if source is None else f"{source}: {self.name} table"


def check_table(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table itself, once it has all columns of the schema called ``name``.

    What reads a table calls this instead of listing columns; a figure, for instance, begins with
    ``rows = check_table(exponents, "curvature/exponents")``.

    Raises:
        DataError: naming table and columns.
    """
    load_schema(name).require(table)
    return table


def load_schema(name: str) -> Schema:
    """The schema of a table, e.g. ``recovery/metrics``.

    Raises:
        DataError: if there is none of this name.
    """
    schema = _load_room(name.split("/")[0]).get(name)
    if schema is None:
        raise DataError(f"no schema of a table {name!r}; there are {', '.join(table_names())}")
    return schema


def table_names() -> list[str]:
    """Names of all tables, room by room."""
    return [name for room in ROOMS for name in _load_room(room)]


@cache
def _load_room(room: str) -> dict[str, Schema]:
    if room not in ROOMS:
        return {}
    text = Path(__file__).with_name(f"{room}.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    schemas = {}
    for table, entry in content["tables"].items():
        columns = [*_columns(entry["columns"], content["shared"])]
        name = f"{room}/{table}"
        schemas[name] = Schema.model_validate(entry | {"name": name, "columns": columns})
    return schemas


def _columns(
    items: list[str | dict[str, str]], shared: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Columns from names of shared ones, and from lines of their own."""
    for item in items:
        names = item.split(", ") if isinstance(item, str) else [*item]
        lines = shared if isinstance(item, str) else item
        for name in names:
            dtype, unit, meaning = (part.strip() for part in lines[name].split("|", 2))
            yield {
                "name": name,
                "dtype": dtype.removesuffix("?"),
                "nullable": dtype.endswith("?"),
                "unit": unit,
                "meaning": meaning,
            }
