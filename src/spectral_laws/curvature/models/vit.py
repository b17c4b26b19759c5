"""Vision transformers (Dosovitskiy et al. 2020), with timm's parameter names."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from spectral_laws.curvature.models.blocks import add_skip, check_heads, layer_norm, self_attention

_WEIGHT_STD = 0.02
_NORM_EPS = 1e-6  # timm's


class PatchEmbedding(nn.Module):
    """A linear map of every patch, as a convolution whose stride is its kernel."""

    def __init__(self, in_channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, in_channels, S, S) to (B, (S / patch)^2, width), row by row."""
        patches: Tensor = self.proj(x)
        return patches.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Self-attention; rows of ``qkv`` are queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, width) to the same shape."""
        out: Tensor = self.proj(self_attention(self.qkv(x), heads=self.heads, causal=False))
        return out


class Perceptron(nn.Module):
    """Linear, exact GELU, linear."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., width) to the same shape."""
        out: Tensor = self.fc2(gelu(self.fc1(x)))
        return out


class Block(nn.Module):
    """Attention and perceptron, each behind a layer norm and beside a skip connection."""

    def __init__(self, width: int, heads: int, *, normalisation: str, skip_scale: float) -> None:
        super().__init__()
        self.skip_scale = skip_scale
        self.norm1 = layer_norm(width, normalisation, eps=_NORM_EPS)
        self.attn = Attention(width, heads)
        self.norm2 = layer_norm(width, normalisation, eps=_NORM_EPS)
        self.mlp = Perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, width) to the same shape."""
        x = add_skip(self.attn(self.norm1(x)), x, self.skip_scale)
        return add_skip(self.mlp(self.norm2(x)), x, self.skip_scale)


class VisionTransformer(nn.Module):
    """Pre-norm transformer on image patches; the class token ends in the head. No dropout.

    ViT-Tiny has width 192, depth 12, 3 heads and patches of 16 pixels. Patch embeddings (of inputs
    of unit variance), class token and positions start such that their sums have unit variance, as
    if they came out of a layer norm: with and without layer norms the network then starts as nearly
    the same function. ``normalisation`` ``none`` leaves out every layer norm. ``patch`` is in
    pixels a side; the perceptrons have 4 ``width`` units.

    Raises:
        ValueError: if the patches do not fill the image, or heads does not divide the width.
    """

    def __init__(
        self,
        *,
        in_channels: int,
        image_size: int,
        patch: int,
        width: int,
        depth: int,
        heads: int,
        n_classes: int,
        normalisation: str = "layer",
        skip_scale: float = 1.0,
    ) -> None:
        super().__init__()
        if image_size % patch:
            raise ValueError(
                f"curvature.models.*.patch: image_size {image_size} is no multiple of patch {patch}"
            )
        check_heads(width, heads)
        self.patch_embed = PatchEmbedding(in_channels, width, patch)
        self.cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + (image_size // patch) ** 2, width))
        self.blocks = nn.Sequential(
            *(
                Block(width, heads, normalisation=normalisation, skip_scale=skip_scale)
                for _ in range(depth)
            )
        )
        self.norm = layer_norm(width, normalisation, eps=_NORM_EPS)
        self.head = nn.Linear(width, n_classes)
        self._initialise()

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of images (B, in_channels, image_size, image_size)."""
        patches = self.patch_embed(x)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), patches], dim=1)
        hidden = self.norm(self.blocks(tokens + self.pos_embed))
        logits: Tensor = self.head(hidden[:, 0])
        return logits

    def _initialise(self) -> None:
        """Weights as in timm (truncated normals of deviation 0.02), but larger embeddings."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=_WEIGHT_STD)
                nn.init.zeros_(module.bias)
        half, projection = math.sqrt(0.5), self.patch_embed.proj
        nn.init.normal_(projection.weight, std=half / math.sqrt(projection.weight[0].numel()))
        nn.init.normal_(self.cls_token, std=half)
        nn.init.normal_(self.pos_embed, std=half)
