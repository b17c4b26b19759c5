"""Known image data sets: draw a subset, bring it to size, standardise it."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.curvature.datasets.cifar import cifar_pools
from spectral_laws.curvature.datasets.folders import imagenet_pools, tiny_imagenet_pools
from spectral_laws.curvature.datasets.idx import mnist_pools
from spectral_laws.curvature.datasets.places import folder_of
from spectral_laws.curvature.datasets.pools import ArrayPool, ImagePool, Images, Indices
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.errors import DataError
from spectral_laws.settings.data import CLASSES, ImageFiles

_CHUNK = 1024  # images in float64 at a time


def load_image_files(settings: ImageFiles, *, seed: int) -> Samples:
    """Load, draw subsets, resize and standardise the configured data set.

    ``train_size`` and ``test_size`` images are drawn at random, without replacement and disjoint,
    from the stream of ``seed``: from the official training and test parts (of Tiny-ImageNet and
    ImageNet, the validation part is the test part), and from the one pool of digits. The shorter
    side is scaled bilinearly (with antialiasing where it shrinks) to ``image_size`` and the middle
    square kept. Every channel is then shifted and scaled by its mean and standard deviation over
    all pixels of the drawn training images.
    """
    train_pool: ImagePool
    test_pool: ImagePool
    if settings.dataset == "digits":
        train_pool = test_pool = _digits()
        order = rng.generator(seed, "images", "digits").permutation(len(train_pool.labels))
        train_rows = order[: settings.train_size]
        test_rows = order[settings.train_size : settings.train_size + settings.test_size]
    else:
        train_pool, test_pool = _pools(settings)
        train_rows = _draw(train_pool, settings.train_size, seed, "train")
        test_rows = _draw(test_pool, settings.test_size, seed, "test")
    train = train_pool.read(train_rows, settings.image_size)
    mean, deviation = _channel_moments(train)
    if not deviation.all():
        raise DataError(f"{train_pool.source}: all training pixels of a channel are equal")
    test = test_pool.read(test_rows, settings.image_size)
    _standardise(train, mean, deviation)
    _standardise(test, mean, deviation)
    return Samples(
        train_inputs=train,
        train_targets=train_pool.labels[train_rows],
        test_inputs=test,
        test_targets=test_pool.labels[test_rows],
        n_classes=train_pool.n_classes,
    )


def _pools(settings: ImageFiles) -> tuple[ImagePool, ImagePool]:
    folder: Path = folder_of(settings.dataset, settings.folder)
    try:
        pools = _read_pools(settings, folder)
    except OSError as error:  # a folder that may not be listed, as the readers name single files
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from None
    for pool in pools:
        if pool.n_classes != CLASSES[settings.dataset]:
            raise DataError(
                f"{pool.source}: holds {pool.n_classes} classes, {settings.dataset} has "
                f"{CLASSES[settings.dataset]}"
            )
    return pools


def _read_pools(settings: ImageFiles, folder: Path) -> tuple[ImagePool, ImagePool]:
    match settings.dataset:
        case "mnist" | "fashion_mnist":
            return mnist_pools(folder)
        case "cifar10" | "cifar100":
            return cifar_pools(folder, settings.dataset)
        case "tiny_imagenet":
            return tiny_imagenet_pools(folder)
        case "imagenet":
            return imagenet_pools(folder)
        case _:
            raise ValueError(f"{settings.dataset} has no files")


def _digits() -> ArrayPool:
    from sklearn.datasets import load_digits  # takes a second to import

    images, labels = load_digits(return_X_y=True)
    return ArrayPool(images.reshape(-1, 1, 8, 8), labels.astype(np.int64), 10, "digits")


def _draw(pool: ImagePool, wanted: int, seed: int, part: str) -> Indices:
    if wanted > len(pool.labels):
        raise DataError(f"{part}_size: {wanted}, but {pool.source} has {len(pool.labels)} images")
    return rng.generator(seed, "images", part).choice(len(pool.labels), wanted, replace=False)


def _channel_moments(images: Images) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of every channel, (channels, 1, 1), two passes in float64."""
    shape = (images.shape[1], 1, 1)
    mean = images.mean(axis=(0, 2, 3), dtype=np.float64).reshape(shape)
    squares = np.zeros(shape)
    for start in range(0, len(images), _CHUNK):
        centred = images[start : start + _CHUNK] - mean
        squares += (centred**2).sum(axis=(0, 2, 3)).reshape(shape)
    n_pixels = len(images) * images.shape[2] * images.shape[3]
    return mean, np.sqrt(squares / n_pixels)


def _standardise(images: Images, mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> None:
    """Shift and scale in place."""
    for start in range(0, len(images), _CHUNK):
        chunk = images[start : start + _CHUNK]
        chunk[...] = (chunk - mean) / deviation
