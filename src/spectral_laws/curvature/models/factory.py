"""From a model's settings to a network with initial weights."""

import torch
from torch import nn

from spectral_laws import rng
from spectral_laws.config import Model
from spectral_laws.curvature.models.mlp import MLP
from spectral_laws.curvature.models.resnet import ResNet18


def build_model(
    settings: Model, *, in_channels: int, image_size: int, n_classes: int, seed: int
) -> nn.Module:
    """The network of ``settings`` on the CPU, in train mode, with initial weights from ``seed``.

    It maps float32 images (B, in_channels, image_size, image_size) to logits (B, n_classes). The
    same arguments give the same weights, and torch's global random state is left as found.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.torch_seed(seed, "initial weights"))
        if settings.architecture == "resnet18":
            return ResNet18(in_channels=in_channels, width=settings.width, n_classes=n_classes)
        assert settings.depth is not None  # checked by the settings
        return MLP(
            in_features=in_channels * image_size**2,
            width=settings.width,
            depth=settings.depth,
            n_classes=n_classes,
        )
