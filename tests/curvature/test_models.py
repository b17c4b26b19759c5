import pytest
import torch

from spectral_laws.config import Model
from spectral_laws.curvature.models import build_model

BLOCK = ["conv1", "bn1", "conv2", "bn2"]
DOWNSAMPLE = ["downsample.0", "downsample.1"]
# Modules with parameters of torchvision's resnet18, in its order.
TORCHVISION = [
    "conv1",
    "bn1",
    *[f"layer1.0.{name}" for name in BLOCK],
    *[f"layer1.1.{name}" for name in BLOCK],
    *[f"layer2.0.{name}" for name in BLOCK + DOWNSAMPLE],
    *[f"layer2.1.{name}" for name in BLOCK],
    *[f"layer3.0.{name}" for name in BLOCK + DOWNSAMPLE],
    *[f"layer3.1.{name}" for name in BLOCK],
    *[f"layer4.0.{name}" for name in BLOCK + DOWNSAMPLE],
    *[f"layer4.1.{name}" for name in BLOCK],
    "fc",
]
BATCH_NORM = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def torchvision_keys() -> list[str]:
    keys = []
    for name in TORCHVISION:
        if name == "fc":
            parts = ["weight", "bias"]
        elif name.rsplit(".", 1)[-1].startswith("bn") or name.endswith("downsample.1"):
            parts = BATCH_NORM
        else:
            parts = ["weight"]
        keys += [f"{name}.{part}" for part in parts]
    return keys


def resnet(width: int = 16, seed: int = 3, image_size: int = 32) -> torch.nn.Module:
    settings = Model(architecture="resnet18", width=width)
    return build_model(settings, in_channels=3, image_size=image_size, n_classes=10, seed=seed)


def mlp(seed: int = 3) -> torch.nn.Module:
    settings = Model(architecture="mlp", width=7, depth=2)
    return build_model(settings, in_channels=1, image_size=8, n_classes=4, seed=seed)


def test_resnet_has_torchvisions_names_and_the_papers_size():
    assert list(resnet().state_dict()) == torchvision_keys()
    assert len(torchvision_keys()) == 122  # torchvision's resnet18 has as many entries
    # 11.17 million parameters: the CIFAR ResNet-18 of width 64 (torchvision's less the 7x7 stem).
    assert sum(p.numel() for p in resnet(64).parameters()) == 11_173_962
    shapes = {name: tuple(p.shape) for name, p in resnet(64).named_parameters()}
    assert shapes["layer4.0.downsample.0.weight"] == (512, 256, 1, 1)
    assert shapes["layer4.1.conv2.weight"] == (512, 512, 3, 3)


@pytest.mark.parametrize("size", [8, 20, 32])
def test_resnet_reduces_the_image_by_eight(size):
    model = resnet(4, image_size=size).eval()
    seen = []
    model.avgpool.register_forward_hook(lambda module, args, output: seen.append(args[0].shape))
    assert model(torch.randn(2, 3, size, size)).shape == (2, 10)
    assert seen == [(2, 32, -(-size // 8), -(-size // 8))]


def test_mlp_has_the_asked_layers():
    model = mlp()
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if "weight" in name}
    assert shapes == {"layers.0.weight": (7, 64), "layers.1.weight": (7, 7), "head.weight": (4, 7)}
    x = torch.randn(3, 1, 8, 8)
    w0, w1, head = (p for p in model.parameters() if p.dim() == 2)
    expected = head @ (w1 @ (w0 @ x.flatten(1).T).relu()).relu()
    torch.testing.assert_close(model(x), expected.T + model.head.bias)


@pytest.mark.parametrize("build", [resnet, mlp])
def test_weights_are_a_function_of_the_seed_alone(build):
    torch.manual_seed(0)
    first = build(seed=5).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.rand(1) == drawn  # the global stream was not used
    again, other = build(seed=5).state_dict(), build(seed=6).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first[next(iter(first))], other[next(iter(other))])
