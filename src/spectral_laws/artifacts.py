"""Tables and arrays on disk: Parquet and safetensors, written atomically, with provenance.

A file appears under its final name complete or not at all: it is written to a temporary name in
the same folder, flushed to disk and renamed. Nothing is ever read with pickle.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from spectral_laws.errors import DataError, NumericalError

_PROVENANCE_KEY = "spectral_laws"
_PACKAGES = ("spectral-laws", "numpy", "scipy", "torch", "pandas", "pyarrow")


@dataclass(frozen=True)
class Provenance:
    """What made a file: parameters, seed, device, versions, commit, seconds since ``started``."""

    parameters: Mapping[str, Any]
    seed: int | None = None
    device: str = "cpu"
    started: float = field(default_factory=time.monotonic)

    def as_dict(self) -> dict[str, Any]:
        """Everything above as plain JSON types."""
        return {
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "device": self.device,
            "versions": {"python": platform.python_version()}
            | {package: version(package) for package in _PACKAGES},
            "commit": _commit(),
            "seconds": round(time.monotonic() - self.started, 3),
        }


def write_table(
    table: pd.DataFrame,
    path: Path,
    provenance: Provenance,
    *,
    nullable: tuple[str, ...] = (),
) -> None:
    """Write a tidy table as Parquet.

    Args:
        table: one row per observation; the index is not written.
        path: final name; parent folders are made.
        provenance: kept in the Parquet schema's metadata.
        nullable: columns in which a missing value has a meaning (say so where they are made).

    Raises:
        NumericalError: if another column has NaN, or any column an infinity.
    """
    for name in table.columns:
        values = table[name]
        if name not in nullable and values.isna().any():
            raise NumericalError(f"{path.name}: column {name!r} has missing or NaN values")
        if pd.api.types.is_float_dtype(values) and np.isinf(values.dropna().to_numpy()).any():
            raise NumericalError(f"{path.name}: column {name!r} has infinite values")
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), _PROVENANCE_KEY: json.dumps(provenance.as_dict())}
    with atomic_path(path) as temporary:
        pq.write_table(arrow.replace_schema_metadata(metadata), temporary)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of :func:`write_table`.

    Raises:
        DataError: if the file is missing or damaged.
    """
    table: pd.DataFrame = _read_parquet(path).to_pandas()
    return table


def write_arrays(arrays: Mapping[str, NDArray[Any]], path: Path, provenance: Provenance) -> None:
    """Write named arrays as safetensors, with provenance in the header.

    Raises:
        NumericalError: if a floating-point array has NaN or infinity.
    """
    for name, array in arrays.items():
        check_finite(f"{path.name}: array {name!r}", array)
    # Not ascontiguousarray, which turns scalars into vectors.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with atomic_path(path) as temporary:
        save_file(contiguous, temporary, {_PROVENANCE_KEY: json.dumps(provenance.as_dict())})


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of :func:`write_arrays`.

    Raises:
        DataError: if the file is missing or damaged.
    """
    with _open_arrays(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def read_provenance(path: Path) -> dict[str, Any]:
    """The provenance inside a table (``.parquet``) or an array file (``.safetensors``).

    Raises:
        DataError: if the file is missing, damaged or has none.
    """
    if path.suffix == ".parquet":
        metadata = _read_parquet(path).schema.metadata or {}
        text = metadata.get(_PROVENANCE_KEY.encode())
    else:
        with _open_arrays(path) as file:
            text = (file.metadata() or {}).get(_PROVENANCE_KEY)
    if text is None:
        raise DataError(f"{path}: no provenance inside, it was not written by spectral-laws")
    return dict(json.loads(text))


def check_finite(name: str, values: ArrayLike) -> None:
    """Raise NumericalError naming ``name`` if ``values`` has NaN or infinity."""
    array = np.asarray(values)
    if np.issubdtype(array.dtype, np.inexact):
        bad = int(array.size - np.count_nonzero(np.isfinite(array)))
        if bad:
            raise NumericalError(f"{name}: {bad} of {array.size} values are NaN or infinite")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such table") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet table ({error})") from None


@contextmanager
def _open_arrays(path: Path) -> Iterator[Any]:
    try:
        file = safe_open(path, framework="numpy")
    except FileNotFoundError:
        raise DataError(f"{path}: no such array file") from None
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a readable safetensors file ({error})") from None
    with file:
        yield file


def _commit() -> str | None:
    """HEAD of the checkout this package lies in, ``-dirty`` if tracked files were edited."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
