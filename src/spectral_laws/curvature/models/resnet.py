"""ResNet-18 with the small-image stem, of any width (He et al. 2015, section 4.2)."""

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm, and a skip connection around them.

    The skip is the identity, or a strided 1x1 convolution with batch norm where the shape changes.
    """

    def __init__(self, in_channels: int, channels: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or in_channels != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, in_channels, H, W) to (B, channels, H / stride, W / stride)."""
        skip = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + skip)  # type: ignore[no-any-return]


class ResNet18(nn.Module):
    """Four stages of two basic blocks with w, 2w, 4w and 8w channels.

    The stem is one 3x3 convolution of stride 1 without pooling, for images of about 32 pixels.
    Parameter names are torchvision's (``conv1``, ``layer1.0.conv1``, ``layer2.0.downsample.0``,
    ``fc``, ...), so that its state dictionaries fit wherever the shapes do.
    """

    def __init__(self, *, in_channels: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = _stage(width, width, stride=1)
        self.layer2 = _stage(width, 2 * width, stride=2)
        self.layer3 = _stage(2 * width, 4 * width, stride=2)
        self.layer4 = _stage(4 * width, 8 * width, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of images (B, in_channels, H, W)."""
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]


def _stage(in_channels: int, channels: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        BasicBlock(in_channels, channels, stride=stride),
        BasicBlock(channels, channels, stride=1),
    )
