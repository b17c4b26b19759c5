"""Strict reader of CIFAR-10 and CIFAR-100, binary version, unpacked or straight from the archive.

Each record is one or two label bytes (CIFAR-100: coarse, then fine) and 3 x 32 x 32 pixel bytes:
all red ones row by row, then green, then blue.
"""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectral_laws.curvature.datasets.places import CIFAR, CifarFormat, find_cifar
from spectral_laws.curvature.datasets.pools import ArrayPool
from spectral_laws.errors import DataError

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_MAX_MEMBER = 1 << 28  # bytes; the largest real file is CIFAR-100's train.bin with 154 million


def cifar_pools(folder: Path, dataset: str) -> tuple[ArrayPool, ArrayPool]:
    """Training and test images of ``cifar10`` or ``cifar100``."""
    layout = CIFAR[dataset]
    place = find_cifar(folder, dataset)
    if place is None:
        raise DataError(
            f"{folder / layout.archive}: no such file\n"
            f"  {folder} must hold the archive of the binary version, {layout.archive}, or its\n"
            f"  files {', '.join(layout.train + layout.test)} (see www.cs.toronto.edu/~kriz)"
        )
    files = _from_archive(place, layout) if place.is_file() else _from_folder(place, layout)
    pools = []
    for names in (layout.train, layout.test):
        parts = [_records(files[name], f"{place}: {name}", layout.label_ranges) for name in names]
        images = np.concatenate([images for images, _ in parts])
        labels = np.concatenate([labels for _, labels in parts])
        pools.append(
            ArrayPool(images, labels.astype(np.int64), layout.label_ranges[-1], str(place))
        )
    return pools[0], pools[1]


def _records(
    content: bytes, name: str, label_ranges: tuple[int, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (N, 3, 32, 32) and the last label of each record."""
    n_labels = len(label_ranges)
    length = n_labels + _PIXELS
    if not content or len(content) % length:
        raise DataError(
            f"{name}: {len(content)} bytes are not a whole number of records of {length} bytes"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, length)
    for column, classes in enumerate(label_ranges):
        highest = int(records[:, column].max())
        if highest >= classes:
            raise DataError(f"{name}: label {highest} is above {classes - 1}")
    return records[:, n_labels:].reshape(-1, 3, _SIDE, _SIDE), records[:, n_labels - 1]


def _from_folder(folder: Path, layout: CifarFormat) -> dict[str, bytes]:
    files = {}
    for name in layout.train + layout.test:
        path = folder / name
        try:
            size = path.stat().st_size
            if size > _MAX_MEMBER:
                raise DataError(f"{path}: {size} bytes, expected at most {_MAX_MEMBER}")
            files[name] = path.read_bytes()
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); put what {layout.archive} holds there"
            ) from None
    return files


def _from_archive(path: Path, layout: CifarFormat) -> dict[str, bytes]:
    """Contents of the expected members; nothing is written to disk."""
    expected = {f"{layout.folder}/{name}": name for name in layout.train + layout.test}
    files: dict[str, bytes] = {}
    try:
        # gzip checks its own sum at the end of the stream, which tarfile's gzip mode does not.
        with gzip.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member_name, content in _members(archive, path, set(expected)):
                files[expected[member_name]] = content
            while unpacked.read(1 << 20):
                pass
    # tarfile lets a ValueError or an OverflowError through for some damaged headers.
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: damaged or not a .tar.gz archive ({error}); download it again"
        ) from error
    missing = sorted(set(expected) - {f"{layout.folder}/{name}" for name in files})
    if missing:
        raise DataError(f"{path}: has no member {missing[0]}; is it the binary version?")
    return files


def _members(
    archive: tarfile.TarFile, path: Path, expected: set[str]
) -> Iterator[tuple[str, bytes]]:
    found: set[str] = set()
    for member in archive:
        if member.name not in expected:
            continue
        if member.name in found:
            raise DataError(f"{path}: member {member.name} occurs twice")
        if not member.isreg() or member.size > _MAX_MEMBER:
            raise DataError(f"{path}: member {member.name} is no regular file of a plausible size")
        found.add(member.name)
        stream = archive.extractfile(member)
        assert stream is not None  # of a regular file
        yield member.name, stream.read()
