"""Labelled images of which only the drawn ones are brought to size: arrays, or encoded files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from spectral_laws.curvature.datasets.decode import decode_image
from spectral_laws.errors import DataError
from spectral_laws.progress import track

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
Indices = NDArray[np.int64]

_CHUNK = 512  # images in float32 at their own size at a time


class ImagePool(Protocol):
    """Images with labels 0..n_classes-1; ``source`` names them in messages."""

    @property
    def labels(self) -> Labels:
        """The class of every image, (N,)."""

    @property
    def n_classes(self) -> int:
        """Number of classes, those without an image here included."""

    @property
    def source(self) -> str:
        """The file or folder."""

    def read(self, indices: Indices, size: int) -> Images:
        """The images ``indices`` as (n, channels, size, size), values 0..255."""


@dataclass(frozen=True)
class ArrayPool:
    """Images (N, channels, H, W) of one size, in memory."""

    images: NDArray[np.uint8] | NDArray[np.float64]
    labels: Labels
    n_classes: int
    source: str

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(
                f"{self.source}: {len(self.labels)} labels for {len(self.images)} images"
            )
        if len(self.labels) and self.labels.max() >= self.n_classes:
            raise DataError(
                f"{self.source}: label {self.labels.max()} is above {self.n_classes - 1}"
            )

    def read(self, indices: Indices, size: int) -> Images:
        """See :class:`ImagePool`."""
        result = np.empty((len(indices), self.images.shape[1], size, size), dtype=np.float32)
        for start in range(0, len(indices), _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = fit_square(self.images[indices[part]].astype(np.float32), size)
        return result


@dataclass(frozen=True)
class EncodedPool:
    """JPEG or PNG files, decoded to three colours when they are drawn."""

    names: Sequence[str]  # of every image, as ``fetch`` takes them and messages say them
    labels: Labels
    n_classes: int
    source: str
    fetch: Callable[[str], bytes]  # the bytes of an image; raises DataError where there are none
    side: int | None = None  # pixels a side that every image must have; None is any

    def read(self, indices: Indices, size: int) -> Images:
        """See :class:`ImagePool`."""
        result = np.empty((len(indices), 3, size, size), dtype=np.float32)
        for row, index in enumerate(track(indices, total=len(indices), label="decoding images")):
            name = self.names[index]
            image = decode_image(self.fetch(name), name=f"{self.source}: {name}")
            if self.side is not None and image.shape[1:] != (self.side, self.side):
                height, width = image.shape[1:]
                raise DataError(
                    f"{self.source}: {name}: {width} x {height} pixels, expected {self.side} x "
                    f"{self.side}"
                )
            result[row] = fit_square(image[None].astype(np.float32), size)[0]
        return result


def fit_square(images: Images, size: int) -> Images:
    """Scale the shorter side to ``size`` and cut the middle square out.

    Bilinear, with antialiasing where images shrink; (N, channels, H, W) to (N, channels, size,
    size). The offset of the cut is rounded down.
    """
    height, width = images.shape[2:]
    shorter = min(height, width)
    new = (max(size, round(height * size / shorter)), max(size, round(width * size / shorter)))
    pixels = torch.from_numpy(images)
    if new != (height, width):
        pixels = torch.nn.functional.interpolate(
            pixels, new, mode="bilinear", antialias=True, align_corners=False
        )
    top, left = (new[0] - size) // 2, (new[1] - size) // 2
    return np.asarray(pixels[:, :, top : top + size, left : left + size].numpy(), dtype=np.float32)
