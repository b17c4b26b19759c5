"""What made a file, kept inside the file: parameters, seed, inputs, versions, commit, cost.

The record is JSON under one key of the file's own metadata, beside the SHA-256 of that JSON. It
holds a digest of the content, so that a damaged file is told from a sound one, and the digests of
the tables and arrays that the process had read, so that a chain of files can be verified.
"""

import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.errors import DataError

KEY = "spectral_laws"
_SEAL = f"{KEY}_sha256"
_PACKAGES = ("spectral-laws", "numpy", "scipy", "torch", "pandas", "pyarrow")

_inputs: dict[str, str] = {}


@dataclass(frozen=True)
class Provenance:
    """What made a file: parameters, seed, device, and when the work began."""

    parameters: Mapping[str, Any]
    seed: int | None = None
    device: str = "cpu"
    started: float = field(default_factory=time.monotonic)

    def facts(self) -> dict[str, Any]:
        """What is the same whenever the same is computed from the same: all but the cost."""
        return {
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "device": self.device,
            "script": Path(sys.argv[0]).name,
            "inputs": dict(sorted(_inputs.items())),
            "versions": {"python": platform.python_version()} | _versions(),
            "commit": commit_of(Path(__file__)),
        }

    def cost(self) -> dict[str, Any]:
        """Seconds since the work began, threads, and the process's peak memory so far (MiB)."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB on Linux
        return {
            "seconds": round(time.monotonic() - self.started, 3),
            "threads": _threads(),
            "peak_memory_mb": round(peak / unit),
        }


def record_input(path: Path, digest: str) -> None:
    """Remember that this process has read the content with this digest from ``path``."""
    _inputs[path.as_posix()] = digest


def forget_inputs() -> None:
    """Start a new job in this process: what was read before is none of its inputs."""
    _inputs.clear()


def seal(record: Mapping[str, Any]) -> dict[str, str]:
    """Metadata of a file: the record as JSON, and the JSON's SHA-256."""
    text = json.dumps(record)
    return {KEY: text, _SEAL: hashlib.sha256(text.encode()).hexdigest()}


def unseal(metadata: Mapping[str, str], path: Path) -> dict[str, Any] | None:
    """The record in a file's metadata; None if the file was not written by this package.

    Raises:
        DataError: if the record is damaged.
    """
    if KEY not in metadata and _SEAL not in metadata:
        return None
    if _SEAL not in metadata:
        raise DataError(f"{path}: written by an older version, without a digest: make it again")
    text = metadata.get(KEY, "")
    if hashlib.sha256(text.encode()).hexdigest() != metadata.get(_SEAL):
        raise DataError(f"{path}: damaged, its provenance is not what was written")
    return dict(json.loads(text))


def table_digest(table: pd.DataFrame) -> str:
    """SHA-256 of a table: per column its name, kind and values, in order, whatever file it is in.

    Numbers count bit by bit, so 0.0 and -0.0 differ, and 1 and 1.0; every missing value is alike.
    """
    digest = hashlib.sha256()
    for name in table.columns:
        kind, missing, content = _column_bytes(table[name])
        digest.update(json.dumps([str(name), kind, len(table), len(content)]).encode())
        digest.update(missing)
        digest.update(content)
    return digest.hexdigest()


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of named arrays: names, types, shapes and values, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, str(array.dtype), np.shape(arrays[name])]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _column_bytes(column: "pd.Series[Any]") -> tuple[str, bytes, bytes]:
    """Kind of a column's values, where they are missing, and what they are."""
    missing = column.isna().to_numpy()
    if pd.api.types.is_numeric_dtype(column.dtype):
        plain: Any = getattr(column.dtype, "numpy_dtype", column.dtype)  # of Int64 and its kind
        values = np.asarray(column.fillna(0), dtype=plain)
        return values.dtype.str, missing.tobytes(), values.tobytes()
    texts = ["" if gone else str(value) for gone, value in zip(missing, column, strict=True)]
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.array([len(text) for text in encoded], dtype="<i8")
    return "text", missing.tobytes(), lengths.tobytes() + b"".join(encoded)


def _threads() -> int:
    """Threads that the numerical libraries were given; OpenMP allows a list, one per level."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(given) if given.isdecimal() else os.cpu_count() or 1


@cache
def _versions() -> dict[str, str]:
    return {package: version(package) for package in _PACKAGES}


@cache
def commit_of(file: Path) -> str | None:
    """HEAD of the repository that tracks a file, ``-dirty`` if tracked files were edited.

    None if none does, as where the package is installed inside a repository of something else.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=file.parent,
            # Looking must not lock: a commit beside a run would fail.
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", file.name)
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
