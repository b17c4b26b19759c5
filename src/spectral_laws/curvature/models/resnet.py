"""ResNet-18 and ResNet-50 of any width (He et al. 2015), with torchvision's parameter names."""

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from spectral_laws.curvature.models.blocks import add_skip, branch_scale


@dataclass(frozen=True)
class BlockOptions:
    """What all blocks of a network share; see :class:`ResNet`."""

    batch_norm: bool
    skip_scale: float
    separable: bool
    last_gain: float  # of the initial weights of a block's last convolution


class ResidualBlock(nn.Module):
    """ReLU(branch(x) + skip_scale * skip(x)).

    The skip is the identity, or a strided 1x1 convolution (``downsample``) where the shape changes.
    Without skips (scale 0) there is no ``downsample`` either.
    """

    expansion: ClassVar[int] = 1
    downsample: nn.Sequential | None

    def __init__(self, skip_scale: float) -> None:
        super().__init__()
        self.skip_scale = skip_scale
        self.relu = nn.ReLU(inplace=True)

    def branch(self, x: Tensor) -> Tensor:
        """The convolutions beside the skip connection."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, in_channels, H, W) to (B, expansion * channels, H / stride, W / stride)."""
        skip = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu(add_skip(self.branch(x), skip, self.skip_scale))
        return out


class BasicBlock(ResidualBlock):
    """Two 3x3 convolutions, the first one with the stride."""

    def __init__(
        self, in_channels: int, channels: int, *, stride: int, options: BlockOptions
    ) -> None:
        super().__init__(options.skip_scale)
        gain = options.last_gain
        self.conv1 = convolution(in_channels, channels, 3, stride=stride, options=options)
        self.bn1 = norm_layer(channels, options)
        self.conv2 = convolution(channels, channels, 3, gain=gain, options=options)
        self.bn2 = norm_layer(channels, options)
        self.downsample = skip_projection(in_channels, channels, stride=stride, options=options)

    def branch(self, x: Tensor) -> Tensor:
        """Convolution, ReLU, convolution."""
        x = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.bn2(self.conv2(x))
        return out


class Bottleneck(ResidualBlock):
    """1x1, 3x3 and 1x1 convolutions with four times the channels at the end.

    The stride is that of the 3x3 convolution, as in torchvision ("version 1.5").
    """

    expansion = 4

    def __init__(
        self, in_channels: int, channels: int, *, stride: int, options: BlockOptions
    ) -> None:
        super().__init__(options.skip_scale)
        out, gain = self.expansion * channels, options.last_gain
        self.conv1 = convolution(in_channels, channels, 1, options=options)
        self.bn1 = norm_layer(channels, options)
        self.conv2 = convolution(channels, channels, 3, stride=stride, options=options)
        self.bn2 = norm_layer(channels, options)
        self.conv3 = convolution(channels, out, 1, gain=gain, options=options)
        self.bn3 = norm_layer(out, options)
        self.downsample = skip_projection(in_channels, out, stride=stride, options=options)

    def branch(self, x: Tensor) -> Tensor:
        """Three convolutions with ReLUs between them."""
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        out: Tensor = self.bn3(self.conv3(x))
        return out


class ResNet(nn.Module):
    """Four stages of residual blocks with w, 2w, 4w and 8w channels (times the expansion).

    Parameter names are torchvision's (``conv1``, ``layer1.0.conv1``, ``layer2.0.downsample.0``,
    ``fc``, ...), and at width 64 with the ImageNet stem so are the shapes.

    Args:
        width: w; torchvision's is 64.
        stem: ``imagenet`` is torchvision's, 7x7 of stride 2 and max-pooling; ``cifar`` is 3x3 of
            stride 1 without pooling, for images of about 32 pixels.
        normalisation: ``batch``, or ``none``: then convolutions have biases, and initial weights
            keep the variance: those that end a block are smaller (see ``blocks.branch_scale``),
            or it would double with every block.
        separable: every 3x3 convolution of the blocks becomes a depth-wise 3x3 (``depthwise``) and
            a 1x1 one (``pointwise``) with nothing between them. The stem stays as it is: it mixes
            the few channels of the image.
    """

    block: ClassVar[type[BasicBlock] | type[Bottleneck]]
    n_blocks: ClassVar[tuple[int, int, int, int]]

    def __init__(
        self,
        *,
        in_channels: int,
        width: int,
        n_classes: int,
        stem: str = "cifar",
        normalisation: str = "batch",
        skip_scale: float = 1.0,
        separable: bool = False,
    ) -> None:
        super().__init__()
        batch_norm = normalisation == "batch"
        last_gain = 1.0 if batch_norm else branch_scale(skip_scale, sum(self.n_blocks))
        options = BlockOptions(batch_norm, skip_scale, separable, last_gain)
        large = stem == "imagenet"
        kernel, stride = (7, 2) if large else (3, 1)
        self.conv1 = _he_convolution(
            in_channels, width, kernel, stride=stride, bias=not batch_norm, gain=1.0
        )
        self.bn1 = norm_layer(width, options)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()
        self.layer1 = self._stage(0, width, options)
        self.layer2 = self._stage(1, width, options)
        self.layer3 = self._stage(2, width, options)
        self.layer4 = self._stage(3, width, options)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width * self.block.expansion, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of images (B, in_channels, H, W)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits

    def _stage(self, stage: int, width: int, options: BlockOptions) -> nn.Sequential:
        channels, expansion = width << stage, self.block.expansion
        before = width if stage == 0 else channels // 2 * expansion
        blocks = [self.block(before, channels, stride=1 if stage == 0 else 2, options=options)]
        for _ in range(self.n_blocks[stage] - 1):
            blocks.append(self.block(channels * expansion, channels, stride=1, options=options))
        return nn.Sequential(*blocks)


class ResNet18(ResNet):
    """Two basic blocks in every stage."""

    block = BasicBlock
    n_blocks = (2, 2, 2, 2)


class ResNet50(ResNet):
    """3, 4, 6 and 3 bottleneck blocks."""

    block = Bottleneck
    n_blocks = (3, 4, 6, 3)


def skip_projection(
    in_channels: int, channels: int, *, stride: int, options: BlockOptions
) -> nn.Sequential | None:
    """Strided 1x1 convolution of the skip; None where the identity fits or there is no skip."""
    if options.skip_scale == 0 or (stride == 1 and in_channels == channels):
        return None
    return nn.Sequential(
        convolution(in_channels, channels, 1, stride=stride, options=options),
        norm_layer(channels, options),
    )


def norm_layer(channels: int, options: BlockOptions) -> nn.Module:
    """Batch norm, or the identity (without parameters)."""
    return nn.BatchNorm2d(channels) if options.batch_norm else nn.Identity()


def convolution(
    in_channels: int,
    channels: int,
    kernel: int,
    *,
    options: BlockOptions,
    stride: int = 1,
    gain: float = 1.0,
) -> nn.Module:
    """A padded convolution (H -> H / stride), or the separable pair in place of a 3x3 one."""
    bias = not options.batch_norm
    if not options.separable or kernel == 1:
        return _he_convolution(in_channels, channels, kernel, stride=stride, bias=bias, gain=gain)
    depthwise = nn.Conv2d(
        in_channels,
        in_channels,
        kernel,
        stride=stride,
        padding=kernel // 2,
        groups=in_channels,
        bias=False,
    )
    # One input per tap and no ReLU behind: this keeps the variance.
    nn.init.normal_(depthwise.weight, std=1 / kernel)
    pointwise = _he_convolution(in_channels, channels, 1, stride=1, bias=bias, gain=gain)
    return nn.Sequential(OrderedDict(depthwise=depthwise, pointwise=pointwise))


def _he_convolution(
    in_channels: int, channels: int, kernel: int, *, stride: int, bias: bool, gain: float
) -> nn.Conv2d:
    """He's initial weights N(0, 2 gain^2 / fan), and zero biases.

    The fan is that of the output, as in torchvision, where batch norm follows (no bias), and that
    of the input, which keeps the variance of the activations, where nothing else does.
    """
    layer = nn.Conv2d(in_channels, channels, kernel, stride, padding=kernel // 2, bias=bias)
    fan = (in_channels if bias else channels) * kernel**2
    nn.init.normal_(layer.weight, std=gain * math.sqrt(2 / fan))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
