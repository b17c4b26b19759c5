"""Hermite features of degree 1 and 2, explicit or a block of samples at a time.

The features of a standard normal x in R^d are orthonormal, E[F F^T] = I_D:

- degree 1: F = x, D = d;
- degree 2: x_i x_j for i < j and (x_i^2 - 1) / sqrt 2, D = d (d + 1) / 2.

Degree-2 features are ordered by cyclic shift: all pairs (i, i), then all (i, i + 1 mod d), then
(i, i + 2 mod d), ... In this order a block of features is an outer product of the block of inputs
with overlapping windows of itself: one elementwise multiplication, without index lists.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_DEGREES = (1, 2)
# Bytes of one chunk of features: it is written once and read twice, so it should stay in cache.
_CPU_CHUNK_BYTES = 3 << 19
_CUDA_CHUNK_BYTES = 1 << 30
_MIN_CHUNK = 128


def feature_dimension(dimension: int, degree: int) -> int:
    """Number of Hermite features, D = C(d + q - 1, q).

    Raises:
        ValueError: if the degree is not 1 or 2, or the dimension is below 1.
    """
    if degree not in _DEGREES:
        raise ValueError(f"degree must be one of {_DEGREES}, got {degree}")
    if dimension < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}")
    return math.comb(dimension + degree - 1, degree)


def index_pairs(dimension: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The input coordinates (i, j) of each degree-2 feature, two arrays of length D."""
    size = feature_dimension(dimension, 2)
    position = np.arange(size)
    first, shift = position % dimension, position // dimension
    return first, (first + shift) % dimension


def hermite_features(inputs: NDArray[np.floating], degree: int) -> NDArray[np.float64]:
    """The feature matrix F, n x D in float64, of inputs n x d.

    It costs n D numbers: for many samples use :class:`FeatureMap`.

    Raises:
        ValueError: if inputs is not a matrix, or the degree is not 1 or 2.
    """
    x = np.asarray(inputs, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"inputs must be n x d, got shape {x.shape}")
    feature_dimension(x.shape[1], degree)
    if degree == 1:
        return x
    first, second = index_pairs(x.shape[1])
    features = x[:, first] * x[:, second]
    squares = slice(0, x.shape[1])
    features[:, squares] = (features[:, squares] - 1.0) / math.sqrt(2.0)
    return features


class FeatureMap:
    """Features of blocks of inputs, computed chunk by chunk into one buffer that stays in cache.

    Blocks are feature-major: inputs d x b, features D x b. For degree 2 the buffer holds the raw
    products R, and F = S R - s 1^T with S = diag(1/sqrt 2 on squares, 1 elsewhere) and
    s = 1/sqrt 2 on squares, 0 elsewhere. S and s are folded into the few vectors that meet the
    features (:meth:`fold`, :meth:`unfold`) instead of into every sample.

    Args:
        dimension: d.
        degree: q, 1 or 2.
        device: where the buffer lives.
        dtype: float32 or float64.
        chunk: samples at a time; chosen from D where left out. It changes speed, not results.
    """

    def __init__(
        self,
        dimension: int,
        degree: int,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        chunk: int | None = None,
    ) -> None:
        self.dimension = dimension
        self.degree = degree
        self.size = feature_dimension(dimension, degree)
        self.device = torch.device(device)
        self.dtype = dtype
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk must be at least 1, got {chunk}")
        self.chunk = chunk or self._default_chunk()
        self._buffers: dict[int, tuple[Tensor, Tensor]] = {}

    def _default_chunk(self) -> int:
        if self.degree == 1:
            return 1 << 12
        budget = _CPU_CHUNK_BYTES if self.device.type == "cpu" else _CUDA_CHUNK_BYTES
        columns = budget // (self.size * self.dtype.itemsize)
        return max(_MIN_CHUNK, 1 << max(columns, 1).bit_length() - 1)

    def raw(self, inputs: Tensor) -> Tensor:
        """Raw features R (D x b) of inputs (d x b); overwritten by the next call."""
        if self.degree == 1:
            return inputs
        d, columns = inputs.shape
        doubled, products = self._buffer(columns)
        doubled[:d].copy_(inputs)
        doubled[d:].copy_(inputs)
        full = (d + 1) // 2  # shifts with d pairs each; an even d has half a shift more
        windows = doubled.as_strided((full, d, columns), (columns, columns, 1))
        torch.mul(windows, doubled[:d], out=products[: full * d].view(full, d, columns))
        rest = self.size - full * d
        if rest:
            torch.mul(doubled[:rest], doubled[rest : 2 * rest], out=products[full * d :])
        return products

    def features(self, inputs: Tensor) -> Tensor:
        """Features F (D x b) of inputs (d x b); overwritten by the next call."""
        features = self.raw(inputs)
        if self.degree == 2:
            features[: self.dimension].sub_(1.0).mul_(math.sqrt(0.5))
        return features

    def fold(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """``(V S, V s)`` of vectors V (k x D), so that V F = (V S) R - (V s) 1^T."""
        if self.degree == 1:
            return vectors, vectors.new_zeros(len(vectors))
        folded = vectors.clone()
        folded[:, : self.dimension] *= math.sqrt(0.5)
        return folded, folded[:, : self.dimension].sum(1)

    def unfold(self, products: Tensor, totals: Tensor) -> Tensor:
        """P F^T (k x D) from P R^T (k x D) and the row sums P 1 (k)."""
        if self.degree == 1:
            return products
        result = products.clone()
        result[:, : self.dimension] -= totals[:, None]
        result[:, : self.dimension] *= math.sqrt(0.5)
        return result

    def _buffer(self, columns: int) -> tuple[Tensor, Tensor]:
        if columns not in self._buffers:
            if len(self._buffers) > 1:  # one for whole chunks, one for the last of a block
                self._buffers.clear()
            self._buffers[columns] = (
                torch.empty(2 * self.dimension, columns, device=self.device, dtype=self.dtype),
                torch.empty(self.size, columns, device=self.device, dtype=self.dtype),
            )
        return self._buffers[columns]
