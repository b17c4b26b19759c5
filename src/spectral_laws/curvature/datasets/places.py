"""Where image data sets lie: folders, and the names of their files. Imports no reader."""

from dataclasses import dataclass
from pathlib import Path

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Folder of Debian's package dataset-fashion-mnist."""

DATA_FOLDER = Path("data")
"""Where the pipeline downloads to, relative to the working folder; one folder per data set."""

IDX_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
"""Images and labels of each part of MNIST and Fashion-MNIST; each file may also be ``.gz``."""


@dataclass(frozen=True)
class CifarFormat:
    """Names of the files, and the classes of each label byte of a record; the last is used."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    label_ranges: tuple[int, ...]


CIFAR = {
    "cifar10": CifarFormat(
        archive="cifar-10-binary.tar.gz",
        folder="cifar-10-batches-bin",
        train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        test=("test_batch.bin",),
        label_ranges=(10,),
    ),
    "cifar100": CifarFormat(
        archive="cifar-100-binary.tar.gz",
        folder="cifar-100-binary",
        train=("train.bin",),
        test=("test.bin",),
        label_ranges=(20, 100),
    ),
}
"""The binary versions of CIFAR-10 and CIFAR-100."""

TINY_ARCHIVE = "tiny-imagenet-200.zip"
TINY_FOLDER = "tiny-imagenet-200"


def folder_of(dataset: str, folder: str | None) -> Path:
    """The folder in which a data set is looked for.

    It is ``folder``, or where that is None: for fashion_mnist Debian's folder if it exists, and
    ``data/<dataset>`` for every other.
    """
    if folder is not None:
        return Path(folder)
    if dataset == "fashion_mnist" and DEBIAN_FOLDER.is_dir():
        return DEBIAN_FOLDER
    return DATA_FOLDER / dataset


def find_idx(folder: Path, name: str) -> Path | None:
    """The file ``name.gz`` of ``folder``, or else ``name``; None if there is neither."""
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    return None


def find_cifar(folder: Path, dataset: str) -> Path | None:
    """The archive in ``folder``, or else the folder that holds its unpacked files; None if neither.

    The unpacked files may lie in ``folder`` itself or in the subfolder of the archive's name.
    """
    layout = CIFAR[dataset]
    archive = folder / layout.archive
    if archive.is_file():
        return archive
    for candidate in (folder / layout.folder, folder):
        if any((candidate / name).is_file() for name in layout.train + layout.test):
            return candidate
    return None


def find_tiny_imagenet(folder: Path) -> Path | None:
    """The archive in ``folder``, or else the unpacked folder (or ``folder`` itself); else None."""
    archive = folder / TINY_ARCHIVE
    if archive.is_file():
        return archive
    for candidate in (folder / TINY_FOLDER, folder):
        if (candidate / "train").is_dir():
            return candidate
    return None
