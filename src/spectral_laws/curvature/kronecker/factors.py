"""Kronecker factors of a layer's curvature: their samples, spectra and alignments."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from spectral_laws.artifacts import check_finite

Vector = NDArray[np.float64]
FactoredModule = nn.Linear | nn.Conv1d | nn.Conv2d
"""Modules whose weight acts on patches of their input, position by position."""

LARGEST_FACTOR = 12_000
"""A factor with more rows is not formed: in float64 it would take more than 1.2 GB."""

_BLOCK = 2**24  # numbers of one block of patches in float64: 128 MB


@dataclass(frozen=True)
class FactorSpectrum:
    """Eigenvalues of one Kronecker factor."""

    eigenvalues: Vector  # (size,) decreasing; tiny negative ones of rounding are set to zero
    # How many lie above Lambda_1 max(size eps64, (size eps)^2), eps being the machine epsilon
    # of the samples that the factor is a second moment of.
    rank: int
    participation_rank: float  # (sum Lambda)^2 / sum Lambda^2; 0 for a zero factor
    entropy_rank: float  # exp(-sum p log p), p = Lambda / sum Lambda; 0 for a zero factor

    @property
    def size(self) -> int:
        """Rows of the factor."""
        return len(self.eigenvalues)


def input_patches(module: FactoredModule, inputs: Tensor) -> Tensor:
    """What the flattened weight is multiplied with at every position and group.

    Returns:
        (B, positions, groups, n_columns), such that group g of the output (without bias) at a
        position is the product of the weight's rows of that group with the patch.
    """
    if isinstance(module, nn.Linear):
        return inputs.reshape(len(inputs), -1, 1, inputs.shape[-1])
    padded = _pad(module, inputs)
    # A view with one axis of output positions and one of kernel taps for every axis in space.
    samples, channels, *space = padded.shape
    sample_stride, channel_stride, *strides = padded.stride()
    per_group = channels // module.groups
    outputs = [
        (size - dilation * (taps - 1) - 1) // step + 1
        for size, taps, step, dilation in zip(
            space, module.kernel_size, module.stride, module.dilation, strict=True
        )
    ]
    view = padded.as_strided(
        (samples, *outputs, module.groups, per_group, *module.kernel_size),
        (
            sample_stride,
            *(stride * step for stride, step in zip(strides, module.stride, strict=True)),
            channel_stride * per_group,
            channel_stride,
            *(stride * dilation for stride, dilation in zip(strides, module.dilation, strict=True)),
        ),
    )
    return view.reshape(samples, math.prod(outputs), module.groups, -1)


def patch_blocks(
    module: FactoredModule, inputs: Tensor, output_shape: torch.Size
) -> Iterator[Tensor]:
    """:func:`input_patches` in float64, in blocks of samples of bounded size."""
    per_sample = output_shape[1:].numel() // module.weight.shape[0] * module.weight[0].numel()
    if not isinstance(module, nn.Linear):
        per_sample *= module.groups
    for block in torch.split(inputs, max(1, _BLOCK // per_sample)):
        yield input_patches(module, block.double())


def output_positions(module: FactoredModule, output: Tensor) -> Tensor:
    """A layer's output, or its gradient, as (B, positions, groups, rows of one group)."""
    if isinstance(module, nn.Linear):
        return output.reshape(len(output), -1, 1, output.shape[-1])
    split = output.reshape(len(output), module.groups, output.shape[1] // module.groups, -1)
    return split.permute(0, 3, 1, 2)


def factor_spectrum(factor: Tensor, *, eps: float, name: str) -> FactorSpectrum:
    """Eigenvalues and effective ranks of a symmetric positive semi-definite float64 matrix.

    ``eps`` is the machine epsilon of the dtype of the samples it is a second moment of.
    """
    check_finite(name, factor.cpu().numpy())
    values = torch.linalg.eigvalsh(factor).flip(0).clamp_min(0).cpu().numpy()
    size, total = len(values), float(values.sum())
    cut = values[0] * max(size * float(np.finfo(np.float64).eps), (size * eps) ** 2)
    if total == 0:
        return FactorSpectrum(values, 0, 0.0, 0.0)
    share = values / total
    share = share[share > 0]  # after the division, which may underflow
    return FactorSpectrum(
        eigenvalues=values,
        rank=int(np.count_nonzero(values > cut)),
        participation_rank=float(1 / (share @ share)),
        entropy_rank=float(np.exp(-share @ np.log(share))),
    )


def aligned_eigenvalues(
    factor: Tensor, vectors: Tensor, spectrum: FactorSpectrum
) -> tuple[Vector, Vector]:
    """Alignments rho_k = w_k^T C w_k / Lambda_k (K,), and the eigenvalues Lambda_k of that rank.

    w_k are the columns of ``vectors``. Both are NaN where k exceeds the rank of C.
    """
    forms = ((factor @ vectors) * vectors).sum(dim=0).cpu().numpy()
    rho, eigenvalues = np.full((2, len(forms)), np.nan)
    kept = min(len(forms), spectrum.rank)
    eigenvalues[:kept] = spectrum.eigenvalues[:kept]
    rho[:kept] = forms[:kept] / eigenvalues[:kept]
    return rho, eigenvalues


def _pad(module: nn.Conv1d | nn.Conv2d, inputs: Tensor) -> Tensor:
    """The input with the module's own padding around it."""
    sizes: list[int] = []  # F.pad counts from the last axis
    for axis in reversed(range(len(module.kernel_size))):
        if isinstance(module.padding, str):
            reach = module.dilation[axis] * (module.kernel_size[axis] - 1)
            total = reach if module.padding == "same" else 0
            sizes += [total // 2, total - total // 2]
        else:
            sizes += [module.padding[axis]] * 2
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return F.pad(inputs, sizes, mode=mode)
