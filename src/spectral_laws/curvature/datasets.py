"""Image classification data as standardised arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.artifacts import check_finite, read_arrays
from spectral_laws.config import Data
from spectral_laws.curvature.idx import read_idx
from spectral_laws.errors import DataError

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
_N_CLASSES = 10  # of digits and of Fashion-MNIST
_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class ImageData:
    """Training and test images (N, channels, S, S) float32, and labels (N,) int64 below n_classes.

    Raises:
        DataError: if shapes, dtypes, label range or finiteness are not so.
    """

    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels
    n_classes: int

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            if images.ndim != 4 or images.shape[2] != images.shape[3] or images.dtype != np.float32:
                raise DataError(
                    f"{part}_images: expected float32 (N, channels, S, S), found {images.dtype} "
                    f"{images.shape}"
                )
            if labels.shape != images.shape[:1] or labels.dtype != np.int64 or not len(labels):
                raise DataError(
                    f"{part}_labels: expected int64 {images.shape[:1]}, not empty, found "
                    f"{labels.dtype} {labels.shape}"
                )
            if labels.min() < 0 or labels.max() >= self.n_classes:
                raise DataError(f"{part}_labels: some lie outside 0..{self.n_classes - 1}")
            check_finite(f"{part}_images", images)
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise DataError("train_images and test_images differ in channels or size")

    @property
    def in_channels(self) -> int:
        """Channels of an image."""
        return int(self.train_images.shape[1])

    @property
    def image_size(self) -> int:
        """Pixels a side."""
        return int(self.train_images.shape[2])

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """The content as named arrays, for :func:`spectral_laws.artifacts.write_arrays`."""
        return {
            "train_images": self.train_images,
            "train_labels": self.train_labels,
            "test_images": self.test_images,
            "test_labels": self.test_labels,
            "n_classes": np.array([self.n_classes], dtype=np.int64),
        }

    @classmethod
    def read(cls, path: Path) -> "ImageData":
        """Read the file that holds :meth:`as_arrays`.

        Raises:
            DataError: if the file is missing or damaged, or its arrays are not as described.
        """
        arrays: Mapping[str, NDArray[Any]] = read_arrays(path)
        expected = {"train_images", "train_labels", "test_images", "test_labels", "n_classes"}
        if set(arrays) != expected:
            raise DataError(f"{path}: arrays {sorted(arrays)}, expected {sorted(expected)}")
        if arrays["n_classes"].size != 1:
            raise DataError(f"{path}: n_classes holds {arrays['n_classes'].size} numbers, not 1")
        n_classes = int(arrays["n_classes"].item())
        try:
            return cls(
                arrays["train_images"],
                arrays["train_labels"],
                arrays["test_images"],
                arrays["test_labels"],
                n_classes,
            )
        except DataError as error:
            raise DataError(f"{path}: {error}") from None


def load_images(settings: Data, *, seed: int) -> ImageData:
    """Load, draw subsets, resize and standardise the configured data set.

    ``train_size`` and ``test_size`` images are drawn at random, without replacement and disjoint,
    from the stream of ``seed``: from the official training and test parts of Fashion-MNIST, and
    from the one pool of digits. Images are resized bilinearly (with antialiasing where they shrink)
    to ``image_size``, then shifted and scaled by the mean and standard deviation over all pixels of
    the drawn training images.

    Raises:
        DataError: if files are missing or damaged, or fewer images exist than are asked for.
    """
    source = _digits if settings.dataset == "digits" else _fashion_mnist
    train, train_labels, test, test_labels = source(settings, seed)
    train, test = _resize(train, settings.image_size), _resize(test, settings.image_size)
    mean = train.mean(dtype=np.float64)
    deviation = train.std(dtype=np.float64)
    if deviation == 0:
        raise DataError(f"{settings.dataset}: all training pixels are equal")
    return ImageData(
        train_images=((train - mean) / deviation).astype(np.float32),
        train_labels=train_labels.astype(np.int64),
        test_images=((test - mean) / deviation).astype(np.float32),
        test_labels=test_labels.astype(np.int64),
        n_classes=_N_CLASSES,
    )


_Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def _digits(settings: Data, seed: int) -> _Parts:
    from sklearn.datasets import load_digits  # takes a second to import

    images, labels = load_digits(return_X_y=True)
    wanted = settings.train_size + settings.test_size
    order = rng.generator(seed, "images", "digits").permutation(len(labels))
    train, test = order[: settings.train_size], order[settings.train_size : wanted]
    images = images.reshape(-1, 8, 8)
    return images[train], labels[train], images[test], labels[test]


def _fashion_mnist(settings: Data, seed: int) -> _Parts:
    folder = DEBIAN_FOLDER if settings.folder is None else Path(settings.folder)
    parts: list[NDArray[Any]] = []
    sizes = {"train": settings.train_size, "test": settings.test_size}
    for part, wanted in sizes.items():
        images_path, labels_path = (_find(folder, name) for name in _FILES[part])
        images, labels = read_idx(images_path, n_axes=3), read_idx(labels_path, n_axes=1)
        if len(images) != len(labels):
            raise DataError(f"{labels_path}: {len(labels)} labels for {len(images)} images")
        if labels.max() >= _N_CLASSES:
            raise DataError(f"{labels_path}: label {labels.max()} is above {_N_CLASSES - 1}")
        if wanted > len(labels):
            raise DataError(
                f"curvature.data.{part}_size: {wanted}, but {images_path} has {len(labels)} images"
            )
        chosen = rng.generator(seed, "images", part).choice(len(labels), wanted, replace=False)
        parts += [images[chosen], labels[chosen]]
    return parts[0], parts[1], parts[2], parts[3]


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise DataError(
        f"{folder / name}: no such file, nor {name}.gz\n"
        f"  curvature.data.folder must hold {', '.join(sum(_FILES.values(), ()))}\n"
        f"  (each plain or .gz); on Debian the package dataset-fashion-mnist puts them into "
        f"{DEBIAN_FOLDER},\n  which is used where curvature.data.folder is null"
    )


def _resize(images: NDArray[Any], size: int) -> Images:
    """Grey images (N, H, W) as (N, 1, size, size) float32."""
    pixels = torch.from_numpy(images.astype(np.float32))[:, None]
    resized = torch.nn.functional.interpolate(
        pixels, (size, size), mode="bilinear", antialias=True, align_corners=False
    )
    return np.asarray(resized.numpy(), dtype=np.float32)
