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
        folded = fmap.fold(vectors.to(self.samples.device)).to(dtype).contiguous()
        shape = (fmap.raw_size, len(vectors))
        products = torch.zeros(shape, device=folded.device, dtype=torch.float64)
        for block in self._blocks():
            partial = torch.zeros(shape, device=folded.device, dtype=dtype)
            for inputs, weights in block:
                raw = fmap.raw(inputs)
                latents = torch.mm(folded, raw).mul_(weights)
                partial.addmm_(raw, latents.T)
            products += partial
        return fmap.unfold(products.T)

    def compress(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """V C V^T (k x k) for rows V (k x D), with half the work of :meth:`apply`."""
        fmap, dtype = self.samples.map, self.samples.dtype
        folded = fmap.fold(torch.as_tensor(vectors, device=self.samples.device))
        folded = folded.to(dtype).contiguous()
        result = torch.zeros(len(vectors), len(vectors), device=folded.device, dtype=torch.float64)
        for where, inputs in self.samples.chunks(self.sample_size):
            latents = torch.mm(folded, fmap.raw(inputs))
            result += (latents * self._weights[where]) @ latents.T
        return np.asarray(((result + result.T) / 2).cpu().numpy())

    def localisation(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much of the quadratic form of each unit row v of V (k x D) one sample makes alone.

        max_mu |w_mu| (v . F_mu)^2 / sum_mu |w_mu| (v . F_mu)^2 with w = (y - ybar) / n, k numbers
        in [0, 1], 0 where the sum is. An eigenvector that one heavy-tailed label made has a share
        of order 1; the share of a direction of many samples falls with n. The work is that of
        :meth:`compress`.
        """
        fmap, dtype = self.samples.map, self.samples.dtype
        folded = fmap.fold(torch.as_tensor(vectors, device=self.samples.device))
        folded = folded.to(dtype).contiguous()
        magnitudes = self._weights.abs()
        largest = torch.zeros(len(vectors), device=folded.device, dtype=dtype)
        total = torch.zeros(len(vectors), device=folded.device, dtype=torch.float64)
        for where, inputs in self.samples.chunks(self.sample_size):
            terms = torch.mm(folded, fmap.raw(inputs)).square_().mul_(magnitudes[where])
            largest = torch.maximum(largest, terms.amax(1))
            total += terms.sum(1)
        share = torch.where(total > 0, largest / total, 0.0)
        return np.asarray(share.clamp(max=1.0).cpu().numpy())

    def dense(self) -> NDArray[np.float64]:
        """C itself, D x D. It takes 2 n D^2 floating-point operations."""
        fmap = self.samples.map
        result = torch.zeros(self.size, self.size, device=self._weights.device, dtype=torch.float64)
        for block in self._blocks():
            partial = torch.zeros_like(result, dtype=self.samples.dtype)
            for inputs, weights in block:
                features = fmap.features(inputs)
                partial.addmm_(features * weights, features.T)
            result += partial
        return np.asarray(((result + result.T) / 2).cpu().numpy())

    def _blocks(self) -> Iterator[Iterator[tuple[Tensor, Tensor]]]:
        """Chunks of inputs and weights by generation block: one float64 addition per block."""
        chunk = self.samples.map.chunk
        for start, inputs in self.samples.input_blocks(self.sample_size):
            weights = self._weights[start : start + inputs.shape[1]]
            yield zip(torch.split(inputs, chunk, dim=1), torch.split(weights, chunk), strict=True)
