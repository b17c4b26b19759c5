"""Tables and arrays on disk: Parquet and safetensors, written atomically, with provenance.

A file appears under its final name complete or not at all: it is written to a temporary name in
the same folder, flushed to disk and renamed. What is read is compared with the digest that was
written with it, so a damaged file is refused. Nothing is ever read with pickle.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from spectral_laws.atomic import atomic_path
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.provenance import (
    Provenance,
    arrays_digest,
    record_input,
    seal,
    table_digest,
    unseal,
)
from spectral_laws.tables.schemas import Schema, load_schema


def write_table(
    table: pd.DataFrame,
    path: Path,
    provenance: Provenance,
    schema: str | Schema | None = None,
) -> None:
    """Write a tidy table as Parquet.

    Args:
        table: one row per observation; the index is not written.
        path: final name; parent folders are made.
        provenance: kept in the Parquet schema's metadata.
        schema: of the table, or its name, e.g. ``recovery/metrics``. A table without one may have
            any columns, and no missing values.

    Raises:
        DataError: if the table does not fit the schema.
        NumericalError: if it has an infinity, or without a schema a missing value.
    """
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    seen = arrow.to_pandas()  # by a reader: missing values and columns of objects have one form
    for name, values in seen.items():
        if schema is None and values.isna().any():
            raise NumericalError(f"{path.name}: column {name!r} has missing or NaN values")
        if pd.api.types.is_float_dtype(values) and np.isinf(values.dropna().to_numpy()).any():
            raise NumericalError(f"{path.name}: column {name!r} has infinite values")
    if schema is not None:
        schema = load_schema(schema) if isinstance(schema, str) else schema
        schema.check(seen, source=path)
    record = seal(provenance.facts() | provenance.cost() | {"content": table_digest(seen)})
    arrow = arrow.replace_schema_metadata((arrow.schema.metadata or {}) | record)
    with atomic_path(path) as temporary:
        pq.write_table(arrow, temporary)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of :func:`write_table`, or a foreign one, which has no digest to check.

    Raises:
        DataError: if the file is missing or damaged.
    """
    try:
        with path.open("rb") as file:  # once: by its name pyarrow opens it twice
            arrow = pq.ParquetFile(file).read()
        table: pd.DataFrame = arrow.to_pandas()
        digest = table_digest(table)
    except FileNotFoundError:
        raise DataError(f"{path}: no such table") from None
    except Exception as error:  # pyarrow and pandas raise anything on damaged bytes
        raise DataError(f"{path}: not a readable Parquet table ({_one_line(error)})") from None
    _check_content(path, _parquet_record(arrow.schema, path), digest)
    return table


def write_arrays(arrays: Mapping[str, NDArray[Any]], path: Path, provenance: Provenance) -> None:
    """Write named arrays as safetensors, with provenance in the header.

    Raises:
        NumericalError: if a floating-point array has NaN or infinity.
    """
    for name, array in arrays.items():
        check_finite(f"{path.name}: array {name!r}", array)
    # Not ascontiguousarray, which turns scalars into vectors.
    contiguous = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        for name, array in arrays.items()
    }
    content = arrays_digest(contiguous)
    record = seal(provenance.facts() | provenance.cost() | {"content": content})
    with atomic_path(path) as temporary:
        try:
            save_file(contiguous, temporary, record)
        except SafetensorError as error:
            raise OSError(_one_line(error)) from None


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of :func:`write_arrays`, or a foreign file, which has no digest to check.

    Raises:
        DataError: if the file is missing or damaged, or holds a type that numpy lacks.
    """
    with _open_arrays(path) as file:
        try:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: holds arrays that numpy cannot ({error})") from None
        record = unseal(file.metadata() or {}, path)
    _check_content(path, record, arrays_digest(arrays))
    return arrays


def read_provenance(path: Path) -> dict[str, Any]:
    """The provenance inside a table (``.parquet``) or an array file (``.safetensors``).

    Raises:
        DataError: if the file is missing, damaged or has none.
    """
    if path.suffix == ".parquet":
        try:
            record = _parquet_record(pq.read_schema(path), path)
        except FileNotFoundError:
            raise DataError(f"{path}: no such table") from None
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: not a readable Parquet table ({_one_line(error)})") from None
    else:
        with _open_arrays(path) as file:
            record = unseal(file.metadata() or {}, path)
    if record is None:
        raise DataError(f"{path}: no provenance inside, it was not written by spectral-laws")
    return record


def check_finite(name: str, values: ArrayLike) -> None:
    """Raise NumericalError naming ``name`` if ``values`` has NaN or infinity."""
    array = np.asarray(values)
    if np.issubdtype(array.dtype, np.inexact):
        bad = int(array.size - np.count_nonzero(np.isfinite(array)))
        if bad:
            raise NumericalError(f"{name}: {bad} of {array.size} values are NaN or infinite")


def _check_content(path: Path, record: Mapping[str, Any] | None, digest: str) -> None:
    if record is not None and record["content"] != digest:
        raise DataError(
            f"{path}: damaged, its content is not what was written; delete it and run again"
        )
    record_input(path, digest)


def _parquet_record(schema: pa.Schema, path: Path) -> dict[str, Any] | None:
    raw = schema.metadata or {}
    return unseal(
        {k.decode(errors="replace"): v.decode(errors="replace") for k, v in raw.items()}, path
    )


@contextmanager
def _open_arrays(path: Path) -> Iterator[Any]:
    try:
        file = safe_open(path, framework="numpy")
    except FileNotFoundError:
        raise DataError(f"{path}: no such array file") from None
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a readable safetensors file ({_one_line(error)})") from None
    with file:
        yield file


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
