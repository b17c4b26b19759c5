"""What a layer does in its network, read off its name and shape."""

import re

from torch import nn

_NAMED = {
    "gpt2": {
        r"attn\.c_attn": "attention_qkv",
        r"attn\.c_proj": "attention_output",
        r"mlp\.c_fc": "mlp_up",
        r"mlp\.c_proj": "mlp_down",
        r"lm_head|score": "head",
    },
    "vit_tiny": {
        r"attn\.qkv": "attention_qkv",
        r"attn\.proj": "attention_output",
        r"mlp\.fc1": "mlp_up",
        r"mlp\.fc2": "mlp_down",
        r"patch_embed\.proj": "patch_embedding",
        r"head": "head",
    },
    "mlp": {r"head": "head"},
    "resnet18": {r"fc": "head"},
    "resnet50": {r"fc": "head"},
    "vgg11": {r"classifier\.6": "head"},
    "vgg16": {r"classifier\.6": "head"},
}


def layer_role(architecture: str, layer: str, module: nn.Module) -> str:
    """Role of a layer of one of the networks of :func:`build_model`.

    Returns:
        ``conv``, ``depthwise_conv`` (one input channel per group), ``pointwise_conv`` (1x1, also
        the 1x1 ones of bottlenecks and skips), ``linear``, ``attention_qkv``, ``attention_output``,
        ``mlp_up``, ``mlp_down``, ``patch_embedding`` or ``head``. ``classifier.3`` of a VGG is the
        head where it is not square: with torchvision's classifier it is a square hidden layer.
    """
    if architecture not in _NAMED:
        raise ValueError(f"architecture {architecture!r} is none of {[*_NAMED]}")
    if not isinstance(module, nn.Linear | nn.Conv2d):
        raise ValueError(f"{layer}: a {type(module).__name__} has no role")
    for pattern, role in _NAMED[architecture].items():
        if re.search(rf"(^|\.)({pattern})$", layer):
            return role
    if isinstance(module, nn.Linear):
        hidden = module.in_features == module.out_features
        vgg_head = architecture.startswith("vgg") and layer == "classifier.3" and not hidden
        return "head" if vgg_head else "linear"
    if module.groups > 1 and module.groups == module.in_channels:
        return "depthwise_conv"
    return "pointwise_conv" if module.kernel_size == (1, 1) else "conv"
