"""A small GPT-2 (Radford et al. 2019) for language modelling and sequence classification."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from spectral_laws.curvature.models.blocks import (
    add_skip,
    branch_scale,
    check_heads,
    layer_norm,
    self_attention,
)

_WEIGHT_STD = 0.02


class Attention(nn.Module):
    """Causal self-attention; rows of ``c_attn`` are queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, width) to the same shape."""
        out: Tensor = self.c_proj(self_attention(self.c_attn(x), heads=self.heads, causal=True))
        return out


class Perceptron(nn.Module):
    """Linear, GELU (tanh approximation, as GPT-2), linear."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., width) to the same shape."""
        out: Tensor = self.c_proj(gelu(self.c_fc(x), approximate="tanh"))
        return out


class Block(nn.Module):
    """Attention and perceptron, each behind a layer norm and beside a skip connection."""

    def __init__(self, width: int, heads: int, *, normalisation: str, skip_scale: float) -> None:
        super().__init__()
        self.skip_scale = skip_scale
        self.ln_1 = layer_norm(width, normalisation)
        self.attn = Attention(width, heads)
        self.ln_2 = layer_norm(width, normalisation)
        self.mlp = Perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, width) to the same shape."""
        x = add_skip(self.attn(self.ln_1(x)), x, self.skip_scale)
        return add_skip(self.mlp(self.ln_2(x)), x, self.skip_scale)


class Decoder(nn.Module):
    """Token and position embeddings, blocks, and a final layer norm."""

    def __init__(
        self,
        *,
        n_tokens: int,
        context: int,
        width: int,
        depth: int,
        heads: int,
        normalisation: str,
        skip_scale: float,
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(n_tokens, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.Sequential(
            *(
                Block(width, heads, normalisation=normalisation, skip_scale=skip_scale)
                for _ in range(depth)
            )
        )
        self.ln_f = layer_norm(width, normalisation)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T) token indices to (B, T, width)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        out: Tensor = self.ln_f(self.h(self.wte(tokens) + self.wpe(positions)))
        return out


class GPT2(nn.Module):
    """Pre-norm transformer decoder with learned positions, without dropout.

    Names are GPT-2's (``transformer.wte``, ``transformer.h.0.attn.c_attn``, ...), but linear
    weights are stored as (out, in), not transposed.

    The head ``lm_head`` has a weight of its own, where GPT-2 uses the embedding's: with one
    weight in one place its curvature is that of the head alone.

    Args:
        width: of the embedding; the perceptron has four times as many units.
        n_classes: sequences are classified, by a head ``score`` on the mean over positions (as in
            language modelling, every position then takes part in the loss); None predicts the
            next token at every position.
        normalisation: ``layer``, or ``none``, which leaves out every layer norm. Embeddings then
            start with unit variance together, as they would come out of a layer norm; all other
            initial weights are the same.
        skip_scale: factor of every skip connection; 0 leaves them out.

    Raises:
        ValueError: if heads does not divide the width.
    """

    def __init__(
        self,
        *,
        n_tokens: int,
        context: int,
        width: int,
        depth: int,
        heads: int,
        n_classes: int | None = None,
        normalisation: str = "layer",
        skip_scale: float = 1.0,
    ) -> None:
        super().__init__()
        check_heads(width, heads)
        self.n_classes = n_classes
        self.transformer = Decoder(
            n_tokens=n_tokens,
            context=context,
            width=width,
            depth=depth,
            heads=heads,
            normalisation=normalisation,
            skip_scale=skip_scale,
        )
        if n_classes is None:
            self.lm_head = nn.Linear(width, n_tokens, bias=False)
        else:
            self.score = nn.Linear(width, n_classes, bias=False)
        embedding_std = math.sqrt(0.5) if normalisation == "none" else _WEIGHT_STD
        self._initialise(embedding_std, branch_scale(skip_scale, 2 * depth))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, n_tokens), or (B, n_classes), of token indices (B, T), T <= context."""
        hidden = self.transformer(tokens)
        language = self.n_classes is None
        logits: Tensor = self.lm_head(hidden) if language else self.score(hidden.mean(1))
        return logits

    def _initialise(self, embedding_std: float, projection_scale: float) -> None:
        """GPT-2's: N(0, 0.02^2), zero biases, and smaller weights at the ends of the branches."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=embedding_std)
            elif isinstance(module, nn.Linear):
                scale = projection_scale if name.endswith("c_proj") else 1.0
                nn.init.normal_(module.weight, std=_WEIGHT_STD * scale)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
