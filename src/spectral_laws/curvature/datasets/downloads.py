"""The files that the pipeline downloads: which, where to, and whether they are the right ones."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlparse

import yaml

from spectral_laws.atomic import atomic_path
from spectral_laws.curvature.datasets.places import (
    DATA_FOLDER,
    find_cifar,
    find_idx,
    find_tiny_imagenet,
    folder_of,
)
from spectral_laws.errors import DataError
from spectral_laws.settings.data import Data, ImageFiles

_PIECE = 1 << 20


@dataclass(frozen=True)
class Download:
    """A file of a data set: its address, size in bytes and SHA-256 (lower-case hex)."""

    dataset: str
    url: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256) or self.size < 1:
            raise ValueError(f"{self.url}: needs a SHA-256 of 64 hex digits and a positive size")

    @property
    def name(self) -> str:
        """The file's name, the last part of its address."""
        return Path(urlparse(self.url).path).name

    @property
    def path(self) -> Path:
        """Where it is downloaded to, relative to the working folder."""
        return DATA_FOLDER / self.dataset / self.name


@cache
def downloads() -> dict[str, tuple[Download, ...]]:
    """The files of every data set that can be downloaded, from ``downloads.yaml``."""
    entries = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {
        dataset: tuple(Download(dataset=dataset, **entry) for entry in files)
        for dataset, files in entries.items()
    }


def archives_of(settings: Data) -> list[str]:
    """The downloaded files that a data set is read from, whether they exist already or not.

    None where its ``folder`` is given, where there is nothing to download, and where its files lie
    unpacked or in Debian's folder. The answer stays the same once the files are there, so that a
    rule with them as input is not run again.
    """
    if not isinstance(settings, ImageFiles) or settings.folder is not None:
        return []
    if folder_of(settings.dataset, None) != DATA_FOLDER / settings.dataset:
        return []
    return [
        str(download.path)
        for download in downloads().get(settings.dataset, ())
        if _place(download) in (None, download.path)
    ]


def missing_downloads() -> list[Download]:
    """The downloads that are not in their place."""
    files = [download for entries in downloads().values() for download in entries]
    return [download for download in files if not download.path.is_file()]


def advice(download: Download, reason: str) -> str:
    """What to do where a file cannot be downloaded for ``reason``."""
    return (
        f"{download.url}: cannot be downloaded ({reason})\n"
        f"  put {download.name} into {download.path.parent}/ yourself, then run again; its SHA-256 "
        f"must be\n  {download.sha256}"
    )


def verify_download(source: Path, target: Path, *, size: int, sha256: str) -> None:
    """Copy ``source`` to ``target`` if it has this size and SHA-256, else leave nothing there."""
    digest, found = hashlib.sha256(), 0
    try:
        with source.open("rb") as file, atomic_path(target) as temporary:
            with temporary.open("wb") as copy:
                while piece := file.read(_PIECE):
                    digest.update(piece)
                    found += len(piece)
                    copy.write(piece)
            if (found, digest.hexdigest()) != (size, sha256):
                raise DataError(
                    f"{target}: the download is not the file it must be; run again to repeat it\n"
                    f"  expected {size} bytes, SHA-256 {sha256}\n"
                    f"  found    {found} bytes, SHA-256 {digest.hexdigest()}"
                )
    except OSError as error:
        raise DataError(f"{source} -> {target}: cannot be copied ({error})") from None


def _place(download: Download) -> Path | None:
    """Where the content of a download is found: its own path, unpacked, or nowhere (None)."""
    folder = download.path.parent
    match download.dataset:
        case "mnist" | "fashion_mnist":
            return find_idx(folder, download.name.removesuffix(".gz"))
        case "cifar10" | "cifar100":
            return find_cifar(folder, download.dataset)
        case "tiny_imagenet":
            return find_tiny_imagenet(folder)
        case unknown:
            raise ValueError(f"{unknown}: no reader is known for this download")
