"""Inputs and labels of a teacher, addressed by block so that every pass sees the same samples.

A stream is cut into generation blocks of fixed size. Block b is always drawn as a whole from its
own counter, in float32 by numpy's Philox, whatever the device, the number of threads, the memory
budget or the chunk of the arithmetic; a sample size n takes the first n samples. So sample size
n1 < n2 of one stream is a prefix of n2. The noise on the labels has a stream of its own, cut into
the same blocks: a noisy and a noiseless teacher see the same inputs.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectral_laws.artifacts import check_finite
from spectral_laws.recovery.hermite import FeatureMap
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.rng import StreamName, block_generator

GENERATION_BLOCK = 4096


class Samples:
    """The samples of one stream.

    Inputs stay in memory while they fit ``memory_mb`` (the first blocks of the stream do) and are
    drawn again on every pass beyond it. Labels y = g(h2) + noise * epsilon, epsilon ~ N(0, 1), are
    computed once and kept.

    Args:
        teacher: gives the labels and the size of their noise.
        stream: name of the stream, e.g. ``("train", degree, dimension, replicate)``.
        seed: root of the random streams.
        device: where inputs are kept and arithmetic is done.
        dtype: of the arithmetic; inputs are drawn in float32 in any case.
        memory_mb: inputs kept, in units of 2^20 bytes.
        chunk: samples at a time in the arithmetic; see :class:`FeatureMap`.
        noiseless: leave the noise out, for a test sample.
    """

    def __init__(
        self,
        teacher: Teacher,
        *stream: StreamName,
        seed: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        memory_mb: float = 1500.0,
        chunk: int | None = None,
        noiseless: bool = False,
    ) -> None:
        self.teacher = teacher
        self.stream = stream
        self.seed = seed
        self.device = torch.device(device)
        self.dtype = dtype
        self.noise = 0.0 if noiseless else teacher.noise
        self.map = FeatureMap(
            teacher.dimension, teacher.degree, device=device, dtype=dtype, chunk=chunk
        )
        self._kept_blocks = memory_mb / self.megabytes(GENERATION_BLOCK)
        self._inputs: dict[int, Tensor] = {}
        self._labels: list[NDArray[np.float64]] = []

    def megabytes(self, sample_size: int) -> float:
        """Memory of the blocks that hold the first n inputs, in units of 2^20 bytes."""
        blocks = -(-sample_size // GENERATION_BLOCK)
        numbers = blocks * GENERATION_BLOCK * self.teacher.dimension
        return numbers * self.dtype.itemsize / 2**20

    def input_blocks(self, sample_size: int) -> Iterator[tuple[int, Tensor]]:
        """Pairs of (position of its first sample, inputs d x b) covering the first n samples."""
        for start in range(0, sample_size, GENERATION_BLOCK):
            yield start, self._block(start // GENERATION_BLOCK)[:, : sample_size - start]

    def chunks(self, sample_size: int) -> Iterator[tuple[slice, Tensor]]:
        """Pairs of (positions, inputs d x b) in chunks that fit the cache."""
        for start, block in self.input_blocks(sample_size):
            for piece in torch.split(block, self.map.chunk, dim=1):
                yield slice(start, start + piece.shape[1]), piece
                start += piece.shape[1]

    def inputs(self, sample_size: int) -> NDArray[np.float64]:
        """The first n inputs, n x d."""
        blocks = [block.T.cpu().double().numpy() for _, block in self.input_blocks(sample_size)]
        return np.concatenate(blocks)

    def labels(self, sample_size: int) -> NDArray[np.float64]:
        """Labels of the first n samples.

        Raises:
            NumericalError: if a label is NaN or infinite.
        """
        while len(self._labels) * GENERATION_BLOCK < sample_size:
            block = len(self._labels)
            self._labels.append(self._label_block(block))
        return np.concatenate(self._labels)[:sample_size]

    def project(self, sample_size: int, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """F V^T of the first n samples, n x k, for vectors V (k x D)."""
        return self._project(self.chunks(sample_size), sample_size, vectors)

    def _project(
        self, chunks: Iterator[tuple[slice, Tensor]], sample_size: int, vectors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        folded = self.map.fold(torch.as_tensor(vectors, device=self.device))
        folded = folded.to(self.dtype).contiguous()
        result = torch.empty(len(vectors), sample_size, device=self.device, dtype=self.dtype)
        for where, inputs in chunks:
            result[:, where] = folded @ self.map.raw(inputs)
        return np.asarray(result.T.double().cpu().numpy())

    def _label_block(self, block: int) -> NDArray[np.float64]:
        inputs = self._block(block)
        step = self.map.chunk
        chunks = (
            (slice(low, low + step), inputs[:, low : low + step])
            for low in range(0, GENERATION_BLOCK, step)
        )
        first_latents = self._project(chunks, GENERATION_BLOCK, self.teacher.directions)
        labels = self.teacher.respond(first_latents)
        if self.noise:
            random = block_generator(self.seed, "noise", *self.stream, block=block)
            labels = labels + self.noise * random.standard_normal(GENERATION_BLOCK)
        check_finite(f"labels of stream {self.stream}, block {block}", labels)
        return labels

    def _block(self, block: int) -> Tensor:
        kept = self._inputs.get(block)
        if kept is not None:
            return kept
        random = block_generator(self.seed, *self.stream, block=block)
        shape = (self.teacher.dimension, GENERATION_BLOCK)
        inputs = torch.from_numpy(random.standard_normal(shape, dtype=np.float32))
        inputs = inputs.to(device=self.device, dtype=self.dtype)
        if block + 1 <= self._kept_blocks:
            self._inputs[block] = inputs
        return inputs
