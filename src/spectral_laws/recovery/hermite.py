"""Hermite features of any degree, explicit or a block of samples at a time.

One feature per multi-index b with |b| = q: F_b(x) = prod_i He_{b_i}(x_i) / sqrt(b_i!), He the
probabilists' polynomials. For a standard normal x in R^d they are orthonormal, E[F F^T] = I_D,
D = C(d + q - 1, q).

- Degree 1: F = x.
- Degree 2: x_i x_j for i < j and (x_i^2 - 1) / sqrt 2, ordered by cyclic shift: all pairs (i, i),
  then all (i, i + 1 mod d), then (i, i + 2 mod d), ... In this order a block of features is an
  outer product of the block of inputs with overlapping windows of itself: one elementwise
  multiplication, without index lists.
- Degree 3 and above: lexicographic order of the q coordinates, (0, 0, 0), (0, 0, 1), ..,
  (0, 0, d - 1), (0, 1, 1), .. A block is built from a table of the He_k and the lower degrees.
"""

import itertools
import math

import numpy as np
import torch
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import NDArray
from torch import Tensor

# Bytes of one chunk of features per thread: written once and read twice, so it should stay in the
# cache of its core.
_CPU_CHUNK_BYTES = 3 << 19
_CUDA_CHUNK_BYTES = 1 << 30
_MIN_CHUNK = 128


def feature_dimension(dimension: int, degree: int) -> int:
    """Number of Hermite features, D = C(d + q - 1, q).

    Raises:
        ValueError: if the degree or the dimension is below 1.
    """
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}")
    if dimension < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}")
    return math.comb(dimension + degree - 1, degree)


def feature_coordinates(dimension: int, degree: int) -> NDArray[np.int64]:
    """The q input coordinates of each feature, D x q, in the order of the features.

    A coordinate stands as often as its power b_i.
    """
    feature_dimension(dimension, degree)
    if degree == 2:
        return np.stack(index_pairs(dimension), axis=1)
    return _lexicographic(dimension, degree)


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
        ValueError: if inputs is not a matrix, or the degree is below 1.
    """
    x = np.asarray(inputs, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"inputs must be n x d, got shape {x.shape}")
    coordinates = feature_coordinates(x.shape[1], degree)
    # The power of a coordinate counts where it stands first; He_0 = 1 fills its other places.
    same = coordinates[:, :, None] == coordinates[:, None, :]
    first = ~np.tril(same, -1).any(axis=2)
    powers = np.where(first, same.sum(axis=2), 0)
    norms = np.sqrt([math.factorial(power) for power in range(degree + 1)])
    table = (hermevander(x, degree) / norms).reshape(len(x), -1)
    columns = coordinates * (degree + 1) + powers
    features = table[:, columns[:, 0]]
    for place in range(1, degree):
        features *= table[:, columns[:, place]]
    return np.asarray(features, dtype=np.float64)


class FeatureMap:
    """Features of blocks of inputs, computed chunk by chunk into one buffer that stays in cache.

    Blocks are feature-major: inputs d x b, features D x b. What a chunk computes are its *raw*
    features R, ``raw_size`` x b, with F = S R for a sparse S. S is folded into the few vectors
    that meet the features, V F = fold(V) R and P F^T = unfold(P R^T), instead of into every sample.

    For degree 2, R holds the products x_i x_j and a last row of ones: a square's feature is
    (x_i^2 - 1) / sqrt 2. For other degrees R = F.

    Args:
        dimension: d.
        degree: q, at least 1.
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
        self.raw_size = self.size + (degree == 2)
        self.device = torch.device(device)
        self.dtype = dtype
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk must be at least 1, got {chunk}")
        self.chunk = chunk or self._default_chunk()
        self._buffers: dict[int, _PairProducts | _LexicographicProducts] = {}

    def _default_chunk(self) -> int:
        if self.degree == 1:
            return 1 << 12
        on_cpu = self.device.type == "cpu"
        budget = _CPU_CHUNK_BYTES * torch.get_num_threads() if on_cpu else _CUDA_CHUNK_BYTES
        columns = budget // (self.size * self.dtype.itemsize)
        return max(_MIN_CHUNK, 1 << max(columns, 1).bit_length() - 1)

    def raw(self, inputs: Tensor) -> Tensor:
        """Raw features R (raw_size x b) of inputs (d x b); overwritten by the next call."""
        return inputs if self.degree == 1 else self._products(inputs.shape[1])(inputs)

    def features(self, inputs: Tensor) -> Tensor:
        """Features F (D x b) of inputs (d x b); overwritten by the next call."""
        features = self.raw(inputs)[: self.size]
        if self.degree == 2:
            features[: self.dimension].sub_(1.0).mul_(math.sqrt(0.5))
        return features

    def fold(self, vectors: Tensor) -> Tensor:
        """V S (k x raw_size) of vectors V (k x D), so that V F = (V S) R."""
        if self.degree != 2:
            return vectors
        folded = vectors.new_empty(len(vectors), self.raw_size)
        folded[:, : self.size] = vectors
        squares = folded[:, : self.dimension]
        squares *= math.sqrt(0.5)
        folded[:, self.size] = -squares.sum(1)
        return folded

    def unfold(self, products: Tensor) -> Tensor:
        """P F^T (k x D) from P R^T (k x raw_size)."""
        if self.degree != 2:
            return products
        result = products[:, : self.size].clone()
        squares = result[:, : self.dimension]
        squares -= products[:, self.size :]
        squares *= math.sqrt(0.5)
        return result

    def _products(self, columns: int) -> "_PairProducts | _LexicographicProducts":
        if columns not in self._buffers:
            if len(self._buffers) > 1:  # one for whole chunks, one for the last of a block
                self._buffers.clear()
            like = torch.empty(0, columns, device=self.device, dtype=self.dtype)
            self._buffers[columns] = (
                _PairProducts(self.dimension, like)
                if self.degree == 2
                else _LexicographicProducts(self.dimension, self.degree, like)
            )
        return self._buffers[columns]


class _PairProducts:
    """Raw features of degree 2 of one chunk, into a buffer whose views are made once."""

    def __init__(self, dimension: int, like: Tensor) -> None:
        d, columns = dimension, like.shape[1]
        size = feature_dimension(d, 2)
        self._result = like.new_empty(size + 1, columns)
        self._result[size] = 1.0
        twice = like.new_empty(2 * d, columns)
        self._twice, self._inputs = twice.view(2, d, columns), twice[:d]
        full = (d + 1) // 2  # shifts with d pairs each; an even d has half a shift more
        self._windows = twice.as_strided((full, d, columns), (columns, columns, 1))
        self._shifts = self._result[: full * d].view(full, d, columns)
        rest = size - full * d
        self._rest = (twice[:rest], twice[rest : 2 * rest], self._result[full * d : size])

    def __call__(self, inputs: Tensor) -> Tensor:
        self._twice.copy_(inputs)
        torch.mul(self._windows, self._inputs, out=self._shifts)
        first, second, result = self._rest
        if len(result):
            torch.mul(first, second, out=result)
        return self._result


class _LexicographicProducts:
    """Features of degree 3 and above of one chunk, each degree from the lower ones.

    A feature is He_p(x_i) / sqrt(p!) of its first coordinate i times a feature of degree q - p in
    the coordinates behind i: per degree two gathers of whole rows and one product.
    """

    def __init__(self, dimension: int, degree: int, like: Tensor) -> None:
        sizes = [1, *(feature_dimension(dimension, q) for q in range(1, degree + 1))]
        ends = list(itertools.accumulate(sizes))
        self._degree = degree
        self._features = like.new_empty(ends[-1], like.shape[1])  # of degree 0, 1, .. q
        self._features[0] = 1.0
        self._factors = like.new_empty(sizes[-1], like.shape[1])
        self._linear = self._features[1 : ends[1]]
        self._steps = []
        codes = {q: _codes(_lexicographic(dimension, q), dimension) for q in range(1, degree)}
        for q in range(2, degree + 1):
            coordinates = _lexicographic(dimension, q)
            power = (coordinates == coordinates[:, :1]).sum(axis=1)
            rest = np.zeros(len(coordinates), dtype=np.int64)
            for p in range(1, q):
                having = power == p
                behind = _codes(coordinates[having, p:], dimension)
                rest[having] = ends[q - p - 1] + np.searchsorted(codes[q - p], behind)
            first = (power - 1) * dimension + coordinates[:, 0]
            self._steps.append(
                (
                    self._features[ends[q - 1] : ends[q]],
                    torch.from_numpy(first).to(like.device),
                    self._factors[: sizes[q]],
                    torch.from_numpy(rest).to(like.device),
                )
            )

    def __call__(self, inputs: Tensor) -> Tensor:
        self._linear.copy_(inputs)
        powers = torch.cat(_normalised_hermite(inputs, self._degree)[1:])
        for features, first, factors, rest in self._steps:
            torch.index_select(powers, 0, first, out=features)
            torch.index_select(self._features, 0, rest, out=factors)
            features.mul_(factors)
        return self._steps[-1][0]


def _lexicographic(dimension: int, degree: int) -> NDArray[np.int64]:
    """All non-decreasing lists of q coordinates, D x q."""
    flat = itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(dimension), degree)
    )
    return np.fromiter(flat, dtype=np.int64).reshape(-1, degree)


def _codes(coordinates: NDArray[np.int64], dimension: int) -> NDArray[np.int64]:
    """Lists of coordinates as numbers to base d: the lexicographic order is that of the codes."""
    digits = dimension ** np.arange(coordinates.shape[1])[::-1]
    return np.asarray(coordinates @ digits)


def _normalised_hermite(x: Tensor, degree: int) -> list[Tensor]:
    """He_k(x) / sqrt(k!) for k = 0 .. q, elementwise, by their three-term recurrence."""
    values = [torch.ones_like(x), x]
    for k in range(1, degree):
        values.append((x * values[k] - math.sqrt(k) * values[k - 1]) / math.sqrt(k + 1))
    return values
