"""Names of the layers with a matrix that each architecture has, as patterns.

They let a misspelt layer be refused before anything is trained, without building a network.
"""

import re

from spectral_laws.settings.curvature import Model

_BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
_IN_BLOCK = {
    "gpt2": ("transformer.h", r"attn\.(c_attn|c_proj)|mlp\.(c_fc|c_proj)"),
    "vit_tiny": ("blocks", r"attn\.(qkv|proj)|mlp\.(fc1|fc2)"),
}
_OUTSIDE = {"gpt2": r"transformer\.w[tp]e|lm_head|score", "vit_tiny": r"patch_embed\.proj|head"}


def has_layer(model: Model, name: str) -> bool:
    """Whether a network of these settings can have a layer of this name with a matrix.

    VGG's layers are known up to their numbers, which depend on the size of the images.
    """
    return re.fullmatch(_pattern(model), name, re.ASCII) is not None


def _pattern(model: Model) -> str:
    name = model.architecture
    if name.startswith("vgg"):
        return r"(features|classifier)\.\d{1,2}"
    if name == "mlp":
        return f"head|layers\\.({_below(model.depth or 0)})"
    if name in _IN_BLOCK:
        place, inside = _IN_BLOCK[name]
        blocks = f"{re.escape(place)}\\.({_below(model.depth or 0)})\\.({inside})"
        return f"{_OUTSIDE[name]}|{blocks}"
    convolutions = r"conv[12]" if name == "resnet18" else r"conv[123]"
    if model.separable:
        convolutions += r"\.(depthwise|pointwise)"
    first = 2 if name == "resnet18" else 1  # stage that begins with a projection
    stages = [
        f"layer{stage}\\.(({_below(count)})\\.{convolutions}"
        + (r"|0\.downsample\.0)" if stage >= first else ")")
        for stage, count in enumerate(_BLOCKS[name], start=1)
    ]
    return "|".join(["conv1", "fc", *stages])


def _below(count: int) -> str:
    return "|".join(map(str, range(min(count, 1000))))
