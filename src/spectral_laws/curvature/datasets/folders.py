"""Strict readers of Tiny-ImageNet-200 (folder or zip archive) and of ImageNet's folders."""

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from spectral_laws.curvature.datasets.decode import MAX_BYTES
from spectral_laws.curvature.datasets.places import TINY_ARCHIVE, TINY_FOLDER, find_tiny_imagenet
from spectral_laws.curvature.datasets.pools import EncodedPool
from spectral_laws.errors import DataError

_TINY_SIDE = 64
_ANNOTATIONS = "val/val_annotations.txt"
_WNID = r"n\d{8}"
_IMAGE = r"[\w.-]+\.(?:jpeg|jpg|png)"
_TINY_TRAIN = re.compile(rf"train/({_WNID})/images/{_IMAGE}", re.ASCII | re.IGNORECASE)
_TINY_TEST = re.compile(rf"val/images/({_IMAGE})", re.ASCII | re.IGNORECASE)
_CLASS_IMAGE = re.compile(rf"(?:train|val)/({_WNID})/{_IMAGE}", re.ASCII | re.IGNORECASE)

Fetch = Callable[[str], bytes]


def tiny_imagenet_pools(folder: Path) -> tuple[EncodedPool, EncodedPool]:
    """Training images and, as test images, the validation images of Tiny-ImageNet-200.

    Classes are the folders of ``train`` in alphabetical order. Images are ``train/<class>/images``
    and, with their classes in ``val/val_annotations.txt``, ``val/images``: 64 pixels a side.
    """
    place = find_tiny_imagenet(folder)
    if place is None:
        raise DataError(
            f"{folder / TINY_ARCHIVE}: no such file\n"
            f"  {folder} must hold {TINY_ARCHIVE} (see cs231n.stanford.edu), or what it unpacks to"
        )
    if place.is_file():
        names, fetch = _open_zip(place)
    else:
        names, fetch = _list(place, "train/*/images", "val/images"), _fetch_from(place)
    train = [(name, found[1]) for name in names if (found := _TINY_TRAIN.fullmatch(name))]
    classes = _classes(place, train)
    annotated = _annotations(place, fetch(_ANNOTATIONS))
    test = []
    for name in names:
        if (found := _TINY_TEST.fullmatch(name)) is not None:
            if found[1] not in annotated:
                raise DataError(f"{place}: {_ANNOTATIONS} has no line for {found[1]}")
            test.append((name, annotated[found[1]]))
    return _pools(place, classes, train, test, fetch, side=_TINY_SIDE)


def imagenet_pools(folder: Path) -> tuple[EncodedPool, EncodedPool]:
    """Training and, as test images, validation images in folders ``train`` and ``val``.

    Each holds one folder per class, named by its WordNet id (n01440764), with the images inside.
    The validation archive unpacks flat: its images must first be moved into such folders. Classes
    are the folders of ``train`` in alphabetical order, which is also torchvision's.
    """
    for part in ("train", "val"):
        if not (folder / part).is_dir():
            raise DataError(
                f"{folder / part}: no such folder\n"
                f"  {folder} must hold ImageNet-1K (image-net.org, on request) as\n"
                "  train/<class>/*.JPEG and val/<class>/*.JPEG; a class is a name like n01440764"
            )
    names = _list(folder, "train/*", "val/*")
    found = [(name, match[1]) for name in names if (match := _CLASS_IMAGE.fullmatch(name))]
    train = [(name, wnid) for name, wnid in found if name.startswith("train/")]
    test = [(name, wnid) for name, wnid in found if name.startswith("val/")]
    return _pools(folder, _classes(folder, train), train, test, _fetch_from(folder), side=None)


def _classes(place: Path, train: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Label of each class: its place in alphabetical order."""
    names = sorted({wnid for _, wnid in train})
    if len(names) < 2:
        raise DataError(
            f"{place}: train holds images of {len(names)} classes, expected at least 2; classes "
            "are folders named like n01440764, images end in .JPEG, .jpg or .png"
        )
    return {name: label for label, name in enumerate(names)}


def _pools(
    place: Path,
    classes: dict[str, int],
    train: Sequence[tuple[str, str]],
    test: Sequence[tuple[str, str]],
    fetch: Fetch,
    *,
    side: int | None,
) -> tuple[EncodedPool, EncodedPool]:
    pools = []
    for part in (train, test):
        for name, wnid in part:
            if wnid not in classes:
                raise DataError(f"{place}: {name} is of class {wnid}, which train does not have")
        labels = np.array([classes[wnid] for _, wnid in part], dtype=np.int64)
        names = [name for name, _ in part]
        pools.append(EncodedPool(names, labels, len(classes), str(place), fetch, side))
    return pools[0], pools[1]


def _annotations(place: Path, content: bytes) -> dict[str, str]:
    """File name -> class of the validation images; lines are tab-separated, boxes follow."""
    classes: dict[str, str] = {}
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: {_ANNOTATIONS} is not plain text ({error})") from None
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) < 2 or not re.fullmatch(_WNID, fields[1]):
            raise DataError(f"{place}: {_ANNOTATIONS}, line {number} is not an image and its class")
        if fields[0] in classes:
            raise DataError(f"{place}: {_ANNOTATIONS} has two lines for {fields[0]}")
        classes[fields[0]] = fields[1]
    return classes


def _list(root: Path, *patterns: str) -> list[str]:
    """Names of the files in the folders that match, relative to ``root``, sorted."""
    folders = [folder for pattern in patterns for folder in root.glob(pattern) if folder.is_dir()]
    names = []
    for folder in folders:  # strings, not Paths: ImageNet has over a million
        above = folder.relative_to(root).as_posix()
        names += [f"{above}/{name}" for name in os.listdir(folder)]
    return sorted(names)


def _fetch_from(root: Path) -> Fetch:
    def fetch(name: str) -> bytes:
        path = root / name
        try:
            with path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None

    return fetch


# What zipfile raises for damaged archives; it has no common base.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


def _open_zip(path: Path) -> tuple[list[str], Fetch]:
    """Names of the expected members, and how to read one; nothing is written to disk."""
    advice = "download it again"
    prefix = f"{TINY_FOLDER}/"
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGE as error:
        raise DataError(f"{path}: damaged or not a zip archive ({error}); {advice}") from error
    members = {}
    for info in archive.infolist():
        name = info.filename.removeprefix(prefix)
        if name == info.filename or not (
            name == _ANNOTATIONS or _TINY_TRAIN.fullmatch(name) or _TINY_TEST.fullmatch(name)
        ):
            continue
        if name in members:
            raise DataError(f"{path}: member {info.filename} occurs twice")
        members[name] = info

    def fetch(name: str) -> bytes:
        if name not in members:
            raise DataError(f"{path}: has no member {prefix}{name}; {advice}")
        info = members[name]
        if info.file_size > MAX_BYTES:
            raise DataError(f"{path}: member {info.filename} has {info.file_size} bytes, too many")
        try:
            with archive.open(info) as stream:
                return stream.read(MAX_BYTES + 1)
        except _DAMAGE as error:
            raise DataError(f"{path}: member {info.filename} is damaged ({error})") from error

    return sorted(members), fetch
