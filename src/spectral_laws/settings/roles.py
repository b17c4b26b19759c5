"""Which layers claims and figures speak of: by what they do in their network, and of which."""

MAIN = "architectures"
"""Experiment whose networks stand for their architectures, without ablation."""
LAYER = ["model", "seed", "layer_index"]
"""Columns that name one layer of one training."""
GAPS = {"kronecker": "exact/kronecker", "kronecker_true": "exact/kronecker_true"}
"""Ratio of the ladder by the Kronecker curvature in it; true: expectation over the classes."""

CONV = ("conv", "pointwise_conv")
"""Convolutions that mix channels; depth-wise ones have one row per channel."""
ATTENTION = ("attention_qkv", "attention_output")
MLP = ("mlp_up", "mlp_down")
BLOCK = (*ATTENTION, *MLP)
"""Layers inside a transformer's blocks."""

GROUPS = {
    "convolution": (*CONV, "depthwise_conv"),
    "attention": ATTENTION,
    "MLP block": MLP,
    "linear": ("linear", "patch_embedding"),
    "head": ("head",),
}
"""Every role, by the family it is drawn as."""
