"""The label-weighted moment matrix C = (1/n) sum_mu (y_mu - ybar) (F_mu F_mu^T - I).

The mean of y - ybar is zero, so the -I term cancels exactly and is never computed. Products are
taken in the samples' dtype inside a block and added up in float64.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectral_laws.recovery.samples import Samples


class MomentMatrix:
    """C of the first ``sample_size`` samples, D x D, applied without being formed.

    Source: arXiv:2605.14567, the layer-wise spectral algorithm, first layer.

    Raises:
        ValueError: if there are fewer than 2 samples.
    """

    def __init__(self, samples: Samples, sample_size: int) -> None:
        if sample_size < 2:
            raise ValueError(f"sample_size must be at least 2, got {sample_size}")
        labels = samples.labels(sample_size)
        self.samples = samples
        self.sample_size = sample_size
        self.size = samples.map.size
        weights = torch.from_numpy((labels - labels.mean()) / sample_size)
        self._weights = weights.to(device=samples.device, dtype=samples.dtype)

    def apply(self, vectors: Tensor) -> Tensor:
        """V C for rows V (k x D, float64): two products per chunk with one set of features.

        It takes 4 n D k floating-point operations.
        """
        fmap, dtype = self.samples.map, self.samples.dtype
        folded, shift = fmap.fold(vectors.to(self.samples.device))
        folded, shift = folded.to(dtype).contiguous(), shift.to(dtype)[:, None]
        products = torch.zeros(self.size, len(vectors), device=folded.device, dtype=torch.float64)
        totals = torch.zeros(len(vectors), device=folded.device, dtype=torch.float64)
        for block in self._blocks():
            partial = torch.zeros(self.size, len(vectors), device=folded.device, dtype=dtype)
            for where, inputs in block:
                raw = fmap.raw(inputs)
                latents = torch.mm(folded, raw).sub_(shift).mul_(self._weights[where])
                partial.addmm_(raw, latents.T.contiguous())
                totals += latents.sum(1)
            products += partial
        return fmap.unfold(products.T, totals)

    def compress(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """V C V^T (k x k) for rows V (k x D), with half the work of :meth:`apply`."""
        fmap, dtype = self.samples.map, self.samples.dtype
        folded, shift = fmap.fold(torch.as_tensor(vectors, device=self.samples.device))
        folded, shift = folded.to(dtype).contiguous(), shift.to(dtype)[:, None]
        result = torch.zeros(len(vectors), len(vectors), device=folded.device, dtype=torch.float64)
        for where, inputs in self.samples.chunks(self.sample_size):
            latents = torch.mm(folded, fmap.raw(inputs)).sub_(shift)
            result += (latents * self._weights[where]) @ latents.T
        return np.asarray(((result + result.T) / 2).cpu().numpy())

    def dense(self) -> NDArray[np.float64]:
        """C itself, D x D. It takes 2 n D^2 floating-point operations."""
        fmap = self.samples.map
        result = torch.zeros(self.size, self.size, device=self._weights.device, dtype=torch.float64)
        for block in self._blocks():
            partial = torch.zeros_like(result, dtype=self.samples.dtype)
            for where, inputs in block:
                features = fmap.features(inputs)
                partial.addmm_(features * self._weights[where], features.T)
            result += partial
        return np.asarray(((result + result.T) / 2).cpu().numpy())

    def _blocks(self) -> Iterator[list[tuple[slice, Tensor]]]:
        """Chunks of inputs, grouped by generation block: one float64 addition per group."""
        step = self.samples.map.chunk
        for start, inputs in self.samples.input_blocks(self.sample_size):
            columns = inputs.shape[1]
            yield [
                (
                    slice(start + low, start + min(low + step, columns)),
                    inputs[:, low : low + step],
                )
                for low in range(0, columns, step)
            ]
