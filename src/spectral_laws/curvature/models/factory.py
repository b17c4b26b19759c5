"""From a model's settings to a network with initial weights."""

import torch
from torch import nn

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models.gpt2 import GPT2
from spectral_laws.curvature.models.mlp import MLP
from spectral_laws.curvature.models.resnet import ResNet18, ResNet50
from spectral_laws.curvature.models.vgg import VGG11, VGG16
from spectral_laws.curvature.models.vit import VisionTransformer
from spectral_laws.settings.curvature import Model


def build_model(settings: Model, samples: Samples, *, seed: int) -> nn.Module:
    """The network of ``settings`` on the CPU, in train mode, with initial weights from ``seed``.

    It maps float32 images (B, channels, S, S) to logits (B, n_classes); token indices (B, T) to
    logits (B, T, n_classes) for language modelling and (B, n_classes) for classification. The same
    arguments give the same weights, and torch's global random state is left as found. Of
    ``samples`` only shapes, vocabulary and number of classes are used.

    Raises:
        ValueError: if the architecture cannot read the samples, or its patches do not fill the
            images.
    """
    if samples.is_language != (settings.architecture == "gpt2"):
        kind = "tokens" if samples.is_language else "images"
        raise ValueError(
            f"curvature.models.*.data: {settings.architecture} cannot read samples of {kind}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.torch_seed(seed, "initial weights"))
        return _build(settings, samples)


def _build(settings: Model, samples: Samples) -> nn.Module:
    name, normalisation = settings.architecture, settings.normaliser
    width, depth, heads = settings.width, settings.depth or 0, settings.heads or 0
    if name == "gpt2":
        assert samples.n_tokens is not None  # checked above
        return GPT2(
            n_tokens=samples.n_tokens,
            context=samples.context,
            n_classes=None if samples.task == "language_modelling" else samples.n_classes,
            width=width,
            depth=depth,
            heads=heads,
            normalisation=normalisation,
            skip_scale=settings.skip_scale,
        )
    channels, size, n_classes = samples.in_channels, samples.image_size, samples.n_classes
    if name == "vit_tiny":
        assert settings.patch is not None  # checked by the settings
        return VisionTransformer(
            in_channels=channels,
            image_size=size,
            patch=settings.patch,
            width=width,
            depth=depth,
            heads=heads,
            n_classes=n_classes,
            normalisation=normalisation,
            skip_scale=settings.skip_scale,
        )
    if name == "mlp":
        return MLP(
            in_features=channels * size**2,
            width=width,
            depth=depth,
            n_classes=n_classes,
            normalisation=normalisation,
        )
    if name in ("vgg11", "vgg16"):
        return (VGG11 if name == "vgg11" else VGG16)(
            in_channels=channels,
            image_size=size,
            width=width,
            n_classes=n_classes,
            stem=settings.stem,
            normalisation=normalisation,
        )
    return (ResNet18 if name == "resnet18" else ResNet50)(
        in_channels=channels,
        width=width,
        n_classes=n_classes,
        stem=settings.stem,
        normalisation=normalisation,
        skip_scale=settings.skip_scale,
        separable=settings.separable,
    )
