"""State dictionaries of torchvision's models fit, by rules written down from the publications."""

import pytest
import torch
from torch import nn

from spectral_laws.curvature.models import VGG11, VGG16, ResNet18, ResNet50

Shapes = dict[str, tuple[int, ...]]
VGG_A = [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"]
VGG_D = [64, 64, "M", 128, 128, "M", *[256] * 3, "M", *[512] * 3, "M", *[512] * 3, "M"]


def batch_norm(name: str, channels: int) -> Shapes:
    vectors = ["weight", "bias", "running_mean", "running_var"]
    return {f"{name}.{v}": (channels,) for v in vectors} | {f"{name}.num_batches_tracked": ()}


def residual_network(counts: list[int], *, bottleneck: bool) -> Shapes:
    """He et al. 2015, table 1; stages of 64, 128, 256 and 512 channels, times 4 in bottlenecks."""
    shapes = {"conv1.weight": (64, 3, 7, 7), **batch_norm("bn1", 64)}
    channels = 64
    for stage, (count, planes) in enumerate(zip(counts, [64, 128, 256, 512], strict=True), 1):
        for i in range(count):
            block = f"layer{stage}.{i}"
            out = planes * 4 if bottleneck else planes
            if bottleneck:
                kernels = [(planes, channels, 1), (planes, planes, 3), (out, planes, 1)]
            else:
                kernels = [(planes, channels, 3), (planes, planes, 3)]
            for j, (rows, columns, size) in enumerate(kernels, 1):
                shapes[f"{block}.conv{j}.weight"] = (rows, columns, size, size)
                shapes |= batch_norm(f"{block}.bn{j}", rows)
            if i == 0 and (stage > 1 or channels != out):
                shapes[f"{block}.downsample.0.weight"] = (out, channels, 1, 1)
                shapes |= batch_norm(f"{block}.downsample.1", out)
            channels = out
    return shapes | {"fc.weight": (1000, channels), "fc.bias": (1000,)}


def vgg(configuration: list[int | str], *, normalised: bool) -> Shapes:
    """Simonyan & Zisserman 2014, table 1, columns A and D."""
    shapes: Shapes = {}
    index, channels = 0, 3
    for entry in configuration:
        if entry == "M":
            index += 1
            continue
        assert isinstance(entry, int)
        shapes[f"features.{index}.weight"] = (entry, channels, 3, 3)
        shapes[f"features.{index}.bias"] = (entry,)
        if normalised:
            shapes |= batch_norm(f"features.{index + 1}", entry)
        index, channels = index + (3 if normalised else 2), entry
    for position, (rows, columns) in ((0, (4096, 25088)), (3, (4096, 4096)), (6, (1000, 4096))):
        shapes[f"classifier.{position}.weight"] = (rows, columns)
        shapes[f"classifier.{position}.bias"] = (rows,)
    return shapes


def large(kind: type[nn.Module], **options: object) -> nn.Module:
    with torch.device("meta"):
        return kind(in_channels=3, width=64, n_classes=1000, stem="imagenet", **options)


CASES = {
    "resnet18": (
        lambda: large(ResNet18),
        residual_network([2, 2, 2, 2], bottleneck=False),
        11_689_512,
    ),
    "resnet50": (
        lambda: large(ResNet50),
        residual_network([3, 4, 6, 3], bottleneck=True),
        25_557_032,
    ),
    "vgg11": (
        lambda: large(VGG11, image_size=224, normalisation="none"),
        vgg(VGG_A, normalised=False),
        132_863_336,
    ),
    "vgg16": (
        lambda: large(VGG16, image_size=224, normalisation="none"),
        vgg(VGG_D, normalised=False),
        138_357_544,
    ),
    "vgg11_bn": (
        lambda: large(VGG11, image_size=224),
        vgg(VGG_A, normalised=True),
        132_868_840,
    ),
    "vgg16_bn": (
        lambda: large(VGG16, image_size=224),
        vgg(VGG_D, normalised=True),
        138_365_992,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_torchvisions_state_dictionary_fits(name):
    build, shapes, n_parameters = CASES[name]
    model = build()
    assert sum(p.numel() for p in model.parameters()) == n_parameters  # as torchvision lists it
    assert list(model.state_dict()) == list(shapes)
    state = {
        key: torch.empty(
            shape, dtype=torch.int64 if key.endswith("tracked") else torch.float32, device="meta"
        )
        for key, shape in shapes.items()
    }
    model.load_state_dict(state, strict=True, assign=True)  # raises on any key or shape
    first = next(iter(shapes))
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict({**state, first: state[first][1:]}, assign=True)


def test_resnet50_has_its_stride_in_the_middle_convolution():
    model = large(ResNet50)
    for stage in (model.layer2, model.layer3, model.layer4):
        strides = [getattr(stage[0], f"conv{i}").stride for i in (1, 2, 3)]
        assert strides == [(1, 1), (2, 2), (1, 1)]
        assert stage[0].downsample[0].stride == (2, 2)
        assert {getattr(b, f"conv{i}").stride for b in stage[1:] for i in (1, 2, 3)} == {(1, 1)}


@pytest.mark.parametrize("kind", [ResNet18, ResNet50])
def test_imagenet_images_reach_the_pooling_at_seven_pixels(kind):
    model = large(kind)
    seen = []
    model.avgpool.register_forward_hook(lambda module, args, output: seen.append(args[0].shape[2:]))
    assert model(torch.empty(2, 3, 224, 224, device="meta")).shape == (2, 1000)
    assert seen == [(7, 7)]


@pytest.mark.parametrize("kind", [VGG11, VGG16])
def test_vgg_has_torchvisions_dropout_with_the_imagenet_stem_alone(kind):
    def dropout(stem: str) -> list[tuple[str, float]]:
        model = kind(in_channels=1, image_size=32, width=2, n_classes=4, stem=stem)
        return [(n, m.p) for n, m in model.named_modules() if isinstance(m, nn.Dropout)]

    assert dropout("imagenet") == [("classifier.2", 0.5), ("classifier.5", 0.5)]
    assert dropout("cifar") == []
