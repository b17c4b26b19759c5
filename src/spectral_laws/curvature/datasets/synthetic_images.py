"""Images around one random smooth pattern per class."""

import numpy as np
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.settings.data import SyntheticImages

_HIGHEST = 3  # frequency; below the limit of 4 of the smallest image, 8 pixels
_STREAM = "synthetic_images"


def generate_images(settings: SyntheticImages, *, seed: int) -> Samples:
    """Draw images x = (P_y + noise e) / sqrt(1 + noise^2), e white Gaussian noise.

    P_y is the pattern of class y, see :func:`class_pattern`. Every pixel has variance 1 over
    classes and noise. The patterns of two classes are about sqrt(2 channels S^2) apart, so that
    they can be told apart while noise is below about sqrt(channels S^2 / 2).

    Labels: every run of ``n_classes`` samples is a random permutation of the classes. They are thus
    balanced, and all present as soon as there are as many samples as classes. A part's first
    samples do not depend on how many follow, nor a class's pattern on how many classes there are.
    """
    patterns = np.stack(
        [
            class_pattern(label, settings.channels, settings.image_size, seed=seed)
            for label in range(settings.n_classes)
        ]
    )
    train, train_labels = _part(settings, patterns, settings.train_size, seed, "train")
    test, test_labels = _part(settings, patterns, settings.test_size, seed, "test")
    return Samples(train, train_labels, test, test_labels, settings.n_classes)


def class_pattern(label: int, channels: int, size: int, *, seed: int) -> NDArray[np.float64]:
    """The pattern of a class, (channels, size, size): a periodic Gaussian field of low frequencies.

    P(x, y) = sum_k (a_k cos 2 pi k.(x, y) + b_k sin 2 pi k.(x, y)) / (1 + |k|^2) over one of each
    pair k, -k of the non-zero integer frequencies up to 3 in each direction, a_k and b_k standard
    normal, taken at pixel centres in the unit square and scaled to mean square 1 over pixels and
    channels. The field is the same at every ``size``; its scale differs in rounding alone.
    """
    generator = rng.generator(seed, _STREAM, "pattern", label)
    side = np.arange(-_HIGHEST, _HIGHEST + 1)
    rows, columns = (grid.ravel() for grid in np.meshgrid(side, side, indexing="ij"))
    half = (rows > 0) | ((rows == 0) & (columns > 0))
    rows, columns = rows[half], columns[half]
    weights = 1 / (1 + rows**2 + columns**2)
    cosines, sines = generator.standard_normal((2, channels, len(weights))) * weights
    centres = (np.arange(size) + 0.5) / size
    vertical = np.exp(2j * np.pi * np.outer(rows, centres))
    horizontal = np.exp(2j * np.pi * np.outer(columns, centres))
    field = np.einsum("ck,ki,kj->cij", cosines - 1j * sines, vertical, horizontal).real
    return np.asarray(field / np.sqrt((field**2).mean()), dtype=np.float64)


def balanced_labels(generator: np.random.Generator, n: int, n_classes: int) -> NDArray[np.int64]:
    """The first ``n`` of random permutations of 0..n_classes-1, one after the other."""
    n_runs = -(-n // n_classes)
    runs = [generator.permutation(n_classes) for _ in range(n_runs)]
    return np.concatenate(runs)[:n].astype(np.int64)


def _part(
    settings: SyntheticImages, patterns: NDArray[np.float64], n: int, seed: int, part: str
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    labels = balanced_labels(rng.generator(seed, _STREAM, part, "labels"), n, settings.n_classes)
    noise = rng.generator(seed, _STREAM, part, "noise").standard_normal(
        (n, *patterns.shape[1:]), dtype=np.float32
    )
    scale = 1 / np.sqrt(1 + settings.noise**2)
    noise *= np.float32(settings.noise * scale)
    noise += (patterns * scale).astype(np.float32)[labels]
    return noise, labels
