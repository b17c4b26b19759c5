"""What layers do in their network, in groups that claims and figures speak of."""

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
