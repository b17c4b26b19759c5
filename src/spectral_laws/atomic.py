"""Files that appear under their final name complete or not at all."""

import glob
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from spectral_laws.errors import DataError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    Temporary files of this name that a killed process of this machine left are removed.

    Raises:
        DataError: if the place cannot be written: read-only, full, or below a file.
    """
    host = re.sub(r"[^A-Za-z0-9]", "-", platform.node())
    temporary = path.with_name(f".{path.stem}.{host}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(glob.escape(f".{path.stem}.{host}.") + "*" + path.suffix):
            writer = left.name.removesuffix(path.suffix).rpartition(".")[2]
            if writer.isdecimal() and not psutil.pid_exists(int(writer)):
                left.unlink(missing_ok=True)
        try:
            yield temporary
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({' '.join(str(error).split())})") from error
