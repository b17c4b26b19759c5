"""What several architectures share: skip connections, layer norm, attention."""

import math

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


def add_skip(branch: Tensor, skip: Tensor, scale: float) -> Tensor:
    """``branch + scale * skip``; the branch alone, without a path to the skip, at scale 0."""
    return branch if scale == 0 else branch.add(skip, alpha=scale)


def branch_scale(skip_scale: float, n_branches: int) -> float:
    """Factor b of the initial weights that end a branch, so that depth does not add up.

    With skips of scale s the variance along the depth is multiplied by s^2 + b^2 per branch. For
    b = sqrt(1 - s^2 + s^2 / n) that is 1 + s^2 / n, hence at most e over n branches. It is
    GPT-2's 1 / sqrt(n) at s = 1, and no factor at all where there are no skips.
    """
    return math.sqrt(1 - skip_scale**2 + skip_scale**2 / n_branches)


def layer_norm(width: int, normalisation: str, *, eps: float = 1e-5) -> nn.Module:
    """LayerNorm over the last axis, or the identity (without parameters) for ``none``."""
    return nn.Identity() if normalisation == "none" else nn.LayerNorm(width, eps=eps)


def self_attention(qkv: Tensor, *, heads: int, causal: bool) -> Tensor:
    """Softmax attention softmax(Q K^T / sqrt(width / heads)) V of every head, side by side.

    ``qkv`` (B, T, 3 width) holds queries, keys and values, each of them head after head; the result
    is (B, T, width), before the output projection.
    """
    batch, length, size = qkv.shape
    parts = qkv.view(batch, length, 3, heads, size // (3 * heads)).permute(2, 0, 3, 1, 4)
    query, key, value = parts.unbind(0)
    seen = scaled_dot_product_attention(query, key, value, is_causal=causal)
    return seen.transpose(1, 2).reshape(batch, length, size // 3)


def check_heads(width: int, heads: int) -> None:
    """Raise ValueError if the heads do not share the width evenly."""
    if width % heads:
        raise ValueError(f"width {width} is no multiple of heads {heads}")
