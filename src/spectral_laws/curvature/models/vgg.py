"""VGG-11 and VGG-16 of any width (Simonyan & Zisserman 2014), with torchvision's names."""

from typing import ClassVar, Literal

from torch import Tensor, nn

_HEAD_PIXELS = 7  # a side, in front of the ImageNet classifier


class VGG(nn.Module):
    """Five stages of 3x3 convolutions with w, 2w, 4w, 8w and 8w channels, then a classifier.

    The layers are ``features.<i>`` and ``classifier.<i>``, numbered as in torchvision; at width 64
    with the ImageNet stem the shapes are torchvision's too.

    A stage ends in max-pooling by 2. Where only one pixel a side is left the pooling is left out
    (an identity keeps the numbering): for images of 16 pixels that is the fifth.

    Args:
        width: w; torchvision's is 64.
        n_classes: rows of the head, the last layer of the classifier.
        stem: ``imagenet`` is torchvision's: average pooling to 7 x 7 pixels, two hidden layers
            of 64 w units, dropout of one half in front of layer 3 and of the head
            (``classifier.6``). It is for measuring given weights: dropout makes a training
            depend on torch's global random state. ``cifar`` averages over all pixels, has one
            hidden layer of 4 w units, no dropout, and its head is ``classifier.3``.
        normalisation: ``batch`` (torchvision's ``vgg11_bn``, ``vgg16_bn``) or ``none``.
    """

    convolutions: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        *,
        in_channels: int,
        image_size: int,
        width: int,
        n_classes: int,
        stem: str = "cifar",
        normalisation: str = "batch",
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels, pixels = in_channels, image_size
        for count, factor in zip(self.convolutions, (1, 2, 4, 8, 8), strict=True):
            for _ in range(count):
                layers.append(nn.Conv2d(channels, factor * width, 3, padding=1))
                channels = factor * width
                if normalisation == "batch":
                    layers.append(nn.BatchNorm2d(channels))
                layers.append(nn.ReLU(inplace=True))
            layers.append(nn.MaxPool2d(2) if pixels > 1 else nn.Identity())
            pixels = max(pixels // 2, 1)
        self.features = nn.Sequential(*layers)
        large = stem == "imagenet"
        self.avgpool = nn.AdaptiveAvgPool2d(_HEAD_PIXELS if large else 1)
        make = _imagenet_classifier if large else _cifar_classifier
        self.classifier = make(channels, width, n_classes)
        self._initialise(batch_norm=normalisation == "batch", large=large)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of images (B, in_channels, image_size, image_size)."""
        logits: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return logits

    def _initialise(self, *, batch_norm: bool, large: bool) -> None:
        """Weights of torchvision, but He's by fan-in where nothing else keeps the variance.

        That is in convolutions without batch norm, and in the small classifier's hidden layer.
        """
        mode: Literal["fan_in", "fan_out"] = "fan_out" if batch_norm else "fan_in"
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
                assert module.bias is not None
                nn.init.zeros_(module.bias)
        linear = [module for module in self.classifier if isinstance(module, nn.Linear)]
        for module in linear if large else linear[:1]:
            if large:
                nn.init.normal_(module.weight, std=0.01)
            else:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)


class VGG11(VGG):
    """One or two convolutions in every stage, eight in all."""

    convolutions = (1, 1, 2, 2, 2)


class VGG16(VGG):
    """Two or three convolutions in every stage, thirteen in all."""

    convolutions = (2, 2, 3, 3, 3)


def _imagenet_classifier(channels: int, width: int, n_classes: int) -> nn.Sequential:
    hidden = 64 * width
    return nn.Sequential(
        nn.Linear(channels * _HEAD_PIXELS**2, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(hidden, n_classes),
    )


def _cifar_classifier(channels: int, width: int, n_classes: int) -> nn.Sequential:
    hidden = 4 * width
    return nn.Sequential(
        nn.Linear(channels, hidden),
        nn.ReLU(inplace=True),
        nn.Identity(),  # where torchvision's has dropout
        nn.Linear(hidden, n_classes),
    )
