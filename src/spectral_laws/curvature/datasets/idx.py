"""Strict reader of IDX files, the format of MNIST and Fashion-MNIST."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from spectral_laws.curvature.datasets.places import DEBIAN_FOLDER, IDX_FILES, find_idx
from spectral_laws.curvature.datasets.pools import ArrayPool
from spectral_laws.errors import DataError

_N_CLASSES = 10  # of MNIST and of Fashion-MNIST
_UNSIGNED_BYTE = 0x08
_PIECE = 1 << 20


def mnist_pools(folder: Path) -> tuple[ArrayPool, ArrayPool]:
    """Training and test images of the four IDX files in ``folder``."""
    pools = []
    for names in IDX_FILES.values():
        images_path, labels_path = (_find(folder, name) for name in names)
        images, labels = read_idx(images_path, n_axes=3), read_idx(labels_path, n_axes=1)
        pools.append(
            ArrayPool(images[:, None], labels.astype(np.int64), _N_CLASSES, str(labels_path))
        )
    return pools[0], pools[1]


def _find(folder: Path, name: str) -> Path:
    found = find_idx(folder, name)
    if found is None:
        raise DataError(
            f"{folder / name}: no such file, nor {name}.gz\n"
            f"  {folder} must hold {', '.join(sum(IDX_FILES.values(), ()))} (each plain or .gz);\n"
            f"  on Debian the package dataset-fashion-mnist puts those of fashion_mnist into "
            f"{DEBIAN_FOLDER},\n  which is used where the data set's folder is null"
        )
    return found


def read_idx(path: Path, *, n_axes: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, plain or gzip-compressed (told by its first bytes).

    The format is: two zero bytes, a type code, the number of axes, one big-endian 32-bit length per
    axis, then the values, row by row. ``n_axes`` is the number of axes it must have: 3 for images,
    1 for labels.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        if compressed:
            with gzip.open(path) as unpacked:
                return _parse(cast(IO[bytes], unpacked), path, n_axes)
        with path.open("rb") as file:
            return _parse(file, path, n_axes)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _parse(stream: IO[bytes], path: Path, n_axes: int) -> NDArray[np.uint8]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\x00\x00":
        raise DataError(f"{path}: not an IDX file (it starts with {magic.hex(' ') or 'nothing'})")
    if magic[2] != _UNSIGNED_BYTE:
        raise DataError(f"{path}: IDX type code {magic[2]:#04x}, expected 0x08 (unsigned bytes)")
    if magic[3] != n_axes:
        raise DataError(f"{path}: IDX array with {magic[3]} axes, expected {n_axes}")
    lengths = stream.read(4 * n_axes)
    if len(lengths) < 4 * n_axes:
        raise DataError(f"{path}: truncated inside the IDX header")
    shape = struct.unpack(f">{n_axes}I", lengths)
    if 0 in shape:
        raise DataError(f"{path}: IDX array of shape {shape} is empty")
    size = math.prod(shape)
    # Read in pieces: a corrupt header may announce more bytes than there is memory.
    pieces: list[bytes] = []
    missing = size + 1
    while missing and (piece := stream.read(min(missing, _PIECE))):
        pieces.append(piece)
        missing -= len(piece)
    found = size + 1 - missing
    if found != size:
        amount = f"only {found}" if found < size else f"more than {size}"
        raise DataError(f"{path}: {amount} bytes of data where shape {shape} needs {size}")
    return np.frombuffer(b"".join(pieces), dtype=np.uint8).reshape(shape)
