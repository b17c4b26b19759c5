import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import gelu

from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.models import (
    GPT2,
    MLP,
    VGG11,
    VGG16,
    ResNet18,
    VisionTransformer,
    build_model,
    layer_role,
)
from spectral_laws.curvature.models.blocks import branch_scale
from spectral_laws.settings.curvature import Model

CONTEXT, VOCABULARY, CLASSES = 6, 11, 4
# Every architecture, small, and every option that changes its layers.
SMALL = {
    "resnet18": {"architecture": "resnet18", "width": 4},
    "resnet18_plain": {"architecture": "resnet18", "width": 4, "normalisation": "none"},
    "resnet18_skipless": {"architecture": "resnet18", "width": 4, "skip_scale": 0.0},
    "resnet18_separable": {"architecture": "resnet18", "width": 4, "separable": True},
    "resnet18_imagenet": {"architecture": "resnet18", "width": 4, "stem": "imagenet"},
    "resnet50": {"architecture": "resnet50", "width": 2},
    "resnet50_plain": {"architecture": "resnet50", "width": 2, "normalisation": "none"},
    "vgg11": {"architecture": "vgg11", "width": 4},
    "vgg11_plain": {"architecture": "vgg11", "width": 4, "normalisation": "none"},
    "vgg11_imagenet": {
        "architecture": "vgg11", "width": 2, "stem": "imagenet", "weights": "given.safetensors",
    },
    "vgg16": {"architecture": "vgg16", "width": 4},
    "vgg16_plain": {"architecture": "vgg16", "width": 4, "normalisation": "none"},
    "mlp": {"architecture": "mlp", "width": 9, "depth": 3},
    "mlp_layer": {"architecture": "mlp", "width": 9, "depth": 3, "normalisation": "layer"},
    "gpt2": {"architecture": "gpt2", "width": 8, "depth": 2, "heads": 2},
    "gpt2_plain": {
        "architecture": "gpt2", "width": 8, "depth": 2, "heads": 2, "normalisation": "none",
    },
    "vit_tiny": {"architecture": "vit_tiny", "width": 8, "depth": 2, "heads": 2, "patch": 4},
    "vit_tiny_plain": {
        "architecture": "vit_tiny", "width": 8, "depth": 2, "heads": 2, "patch": 4,
        "normalisation": "none",
    },
}  # fmt: skip
IMAGE_MODELS = [name for name in SMALL if not name.startswith("gpt2")]


def images(size: int = 16, channels: int = 3) -> Samples:
    inputs = np.zeros((2, channels, size, size), np.float32)
    return Samples(inputs, np.arange(2), inputs, np.arange(2), CLASSES)


def tokens(task: str = "language_modelling") -> Samples:
    inputs = np.zeros((2, CONTEXT), np.int64)
    if task == "language_modelling":
        return Samples(inputs, inputs, inputs, inputs, VOCABULARY, VOCABULARY)
    return Samples(inputs, inputs[:, 0], inputs, inputs[:, 0], CLASSES, VOCABULARY)


def settings(name: str, **changes: object) -> Model:
    return Model(data="data", training="training", **(SMALL[name] | changes))


def build(name: str, *, seed: int = 3, size: int = 16, **changes: object) -> nn.Module:
    samples = tokens() if name.startswith("gpt2") else images(size)
    return build_model(settings(name, **changes), samples, seed=seed)


def inputs_of(name: str, n: int = 3, size: int = 16) -> Tensor:
    if name.startswith("gpt2"):
        return torch.randint(VOCABULARY, (n, CONTEXT))
    return torch.randn(n, 3, size, size)


def randomise(model: nn.Module) -> nn.Module:
    """Parameters and statistics away from the special values of the initial network."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
    return model


# What holds for every network


@pytest.mark.parametrize("name", SMALL)
def test_logits_and_gradients(name):
    model = build(name)
    assert model.training
    assert {(p.dtype, p.device.type) for p in model.parameters()} == {(torch.float32, "cpu")}
    x = inputs_of(name, n=12)
    logits = model(x)
    assert logits.shape == ((12, CONTEXT, VOCABULARY) if name.startswith("gpt2") else (12, CLASSES))
    (logits * torch.randn_like(logits)).sum().backward()
    unreached = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unreached == []


@pytest.mark.parametrize("name", SMALL)
def test_weights_are_a_function_of_the_seed_alone(name):
    torch.manual_seed(0)
    first = build(name, seed=5).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.rand(1) == drawn  # the global stream was not used
    again, other = build(name, seed=5).state_dict(), build(name, seed=6).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    drawn_keys = [key for key in first if first[key].dim() > 1]
    assert drawn_keys
    assert not any(torch.equal(first[key], other[key]) for key in drawn_keys)


@pytest.mark.parametrize("name", SMALL)
def test_samples_do_not_meet_in_eval_mode(name):
    model = randomise(build(name)).double().eval()
    x = inputs_of(name)
    x = x.double() if x.is_floating_point() else x
    together = model(x)
    alone = torch.cat([model(x[i : i + 1]) for i in range(len(x))])
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(together[0], together[1])


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_memory_format_does_not_matter(name):
    model = randomise(build(name)).double().eval()
    x = inputs_of(name).double()
    expected = model(x)
    model.to(memory_format=torch.channels_last)
    found = model(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_modes_differ_where_there_is_batch_norm_or_dropout_alone(name):
    model = randomise(build(name))
    x = inputs_of(name)
    with torch.random.fork_rng():
        trained = model(x)
    evaluated = model.eval()(x)
    kinds = (nn.BatchNorm2d, nn.Dropout)
    depends = any(isinstance(module, kinds) for module in model.modules())
    assert depends == (not torch.equal(trained, evaluated))
    assert depends == ("plain" not in name and name.startswith(("resnet", "vgg")))
    assert torch.equal(evaluated, model(x))


@pytest.mark.parametrize("name", SMALL)
def test_every_layer_has_a_role_and_one_is_the_head(name):
    model = build(name)
    layers = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)}
    roles = {n: layer_role(SMALL[name]["architecture"], n, m) for n, m in layers.items()}
    assert [n for n, role in roles.items() if role == "head"] == [list(layers)[-1]]
    known = {"conv", "depthwise_conv", "pointwise_conv", "linear", "attention_qkv"}
    known |= {"attention_output", "mlp_up", "mlp_down", "patch_embedding", "head"}
    assert set(roles.values()) <= known


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "gpt2", "vit_tiny"])
def test_skip_scale_one_is_the_default(name):
    default, one = build(name), build(name, skip_scale=1.0)
    x = inputs_of(name)
    assert torch.equal(default.eval()(x), one.eval()(x))


@pytest.mark.parametrize("architecture", ["resnet18", "gpt2"])
def test_architectures_read_their_own_samples(architecture):
    other = tokens() if architecture == "resnet18" else images()
    with pytest.raises(ValueError, match=rf"curvature\.models\.\*\.data: {architecture} cannot"):
        build_model(settings(architecture), other, seed=0)


# Skip connections and initial variances


@given(st.floats(0, 1), st.integers(1, 200))
def test_branch_scale_bounds_the_growth_over_depth(skip_scale, n):
    scale = branch_scale(skip_scale, n)
    assert 0 <= scale <= 1
    growth = (skip_scale**2 + scale**2) ** n
    assert growth == pytest.approx((1 + skip_scale**2 / n) ** n)
    assert 1 - 1e-9 <= growth < math.e + 1e-9
    assert branch_scale(1.0, n) == pytest.approx(1 / math.sqrt(n))
    assert branch_scale(0.0, n) == 1


# Not a ResNet-50 without skips: in 48 narrow layers the variance is a product of random factors.
@pytest.mark.parametrize(
    ("name", "skip_scale"),
    [("resnet50", 1.0), *((n, s) for n in ("resnet18", "gpt2", "vit_tiny") for s in (0, 0.5, 1.0))],
)
def test_activations_keep_their_size_without_normalisation(name, skip_scale):
    width = {"resnet18": 16, "resnet50": 8}.get(name, 32)
    model = build(name, size=32, width=width, normalisation="none", skip_scale=skip_scale)
    first, last = {
        "resnet18": ("layer1", "layer4"),
        "resnet50": ("layer1", "layer4"),
        "gpt2": ("transformer.h.0.ln_1", "transformer.ln_f"),
        "vit_tiny": ("blocks.0.norm1", "norm"),
    }[name]
    sizes = {}
    for key in (first, last):
        model.get_submodule(key).register_forward_hook(
            lambda module, args, output, key=key: sizes.update({key: output.square().mean().item()})
        )
    model(inputs_of(name, n=8, size=32))
    if name in ("gpt2", "vit_tiny"):
        assert 0.5 < sizes[first] < 2  # as behind a layer norm
        assert sizes[last] < 8 * sizes[first]
    else:
        assert 1 / 30 < sizes[last] / sizes[first] < 30  # 256 times more per 8 unscaled blocks


# Residual networks


@pytest.mark.parametrize("size", [8, 20, 32])
def test_resnet_reduces_the_image_by_eight(size):
    model = build("resnet18", size=size).eval()
    seen = []
    model.avgpool.register_forward_hook(lambda module, args, output: seen.append(args[0].shape))
    assert model(torch.randn(2, 3, size, size)).shape == (2, CLASSES)
    assert seen == [(2, 32, -(-size // 8), -(-size // 8))]


def test_cifar_resnet18_has_the_papers_size():
    # torchvision's 11,689,512 less the 7x7 stem and 1000 classes: 11.17 million.
    model = ResNet18(in_channels=3, width=64, n_classes=10)
    assert sum(p.numel() for p in model.parameters()) == 11_173_962


@pytest.mark.parametrize("skip_scale", [0.25, 1.0])
def test_blocks_add_the_scaled_skip(skip_scale):
    model = randomise(build("resnet18", skip_scale=skip_scale)).double().eval()
    x = torch.randn(2, 4, 8, 8, dtype=torch.float64)
    same, wider = model.layer1[0], model.layer2[0]
    branch = same.bn2(same.conv2(same.bn1(same.conv1(x)).relu()))
    torch.testing.assert_close(same(x), (branch + skip_scale * x).relu())
    branch = wider.bn2(wider.conv2(wider.bn1(wider.conv1(x)).relu()))
    torch.testing.assert_close(wider(x), (branch + skip_scale * wider.downsample(x)).relu())


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_without_skips_there_is_a_plain_chain(name):
    model = build(name, skip_scale=0.0).eval()
    assert not any("downsample" in key for key in model.state_dict())
    x = inputs_of(name)
    chain = model.bn1(model.conv1(x)).relu()
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in stage:
            for i in (1, 2) if name == "resnet18" else (1, 2, 3):
                convolution, norm = getattr(block, f"conv{i}"), getattr(block, f"bn{i}")
                chain = norm(convolution(chain)).relu()
    torch.testing.assert_close(model(x), model.fc(chain.mean((2, 3))))


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg11", "vgg16"])
def test_without_normalisation_is_batch_norm_that_does_nothing(name):
    plain, normed = build(name, normalisation="none").eval(), build(name).eval()
    assert not any(isinstance(m, nn.BatchNorm2d) for m in plain.modules())
    kinds = (nn.Conv2d, nn.Linear)
    layers = [[m for m in net.modules() if isinstance(m, kinds)] for net in (plain, normed)]
    with torch.no_grad():
        for ours, theirs in zip(*layers, strict=True):
            assert ours.bias is not None
            theirs.weight.copy_(ours.weight)
            if theirs.bias is not None:
                theirs.bias.copy_(ours.bias)
        for module in normed.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_var.fill_(1 - module.eps)
    x = inputs_of(name)
    torch.testing.assert_close(plain(x), normed(x), rtol=1e-4, atol=1e-5)


def test_separable_convolutions_compose_to_dense_ones():
    separable, dense = (
        build("resnet18_separable").double().eval(),
        build("resnet18").double().eval(),
    )
    state = {}
    for key, value in separable.state_dict().items():
        if key.endswith("depthwise.weight"):
            pointwise = separable.state_dict()[key.replace("depthwise", "pointwise")]
            state[key.replace(".depthwise", "")] = pointwise * value.transpose(0, 1)
        elif "pointwise" not in key:
            state[key] = value
    dense.load_state_dict(state)
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(separable(x), dense(x))
    depthwise = [m for n, m in separable.named_modules() if n.endswith("depthwise")]
    assert len(depthwise) == 16
    assert all(m.groups == m.in_channels == m.out_channels for m in depthwise)


def test_roles_of_convolutions():
    def count(name: str) -> Counter[str]:
        layers = [
            (n, m) for n, m in build(name).named_modules() if isinstance(m, nn.Linear | nn.Conv2d)
        ]
        return Counter(layer_role(SMALL[name]["architecture"], n, m) for n, m in layers)

    assert count("resnet18") == {"conv": 17, "pointwise_conv": 3, "head": 1}
    # Per block two 1x1 and one 3x3, four skips, the stem.
    assert count("resnet50") == {"conv": 17, "pointwise_conv": 36, "head": 1}
    assert count("resnet18_separable") == {
        "conv": 1,
        "depthwise_conv": 16,
        "pointwise_conv": 19,
        "head": 1,
    }
    assert count("vgg11") == {"conv": 8, "linear": 1, "head": 1}
    assert count("vgg11_imagenet") == {"conv": 8, "linear": 2, "head": 1}
    assert count("vgg16") == {"conv": 13, "linear": 1, "head": 1}
    assert count("mlp") == {"linear": 3, "head": 1}


# VGG


@pytest.mark.parametrize(("size", "pools"), [(8, 3), (16, 4), (20, 4), (32, 5), (64, 5)])
def test_vgg_leaves_out_poolings_of_single_pixels(size, pools):
    model = build("vgg11", size=size)
    assert sum(isinstance(m, nn.MaxPool2d) for m in model.features) == pools
    assert model.features(torch.randn(2, 3, size, size)).shape[2:] == (max(size // 32, 1),) * 2
    # The numbering is that of the large network.
    assert list(model.state_dict()) == list(build("vgg11", size=64).state_dict())


def test_small_plain_vgg_has_the_authors_layers():
    # Names and shapes in the published VGG-11 results: classifier.0 is 256 x 512.
    with torch.device("meta"):
        model = VGG11(in_channels=3, image_size=32, width=64, n_classes=10, normalisation="none")
    shapes = {n: tuple(p.flatten(1).shape) for n, p in model.named_parameters() if p.dim() > 1}
    assert shapes["features.0.weight"] == (64, 27)
    assert shapes["features.3.weight"] == (128, 576)
    assert shapes["features.6.weight"] == (256, 1152)
    assert shapes["features.11.weight"] == (512, 2304)
    assert shapes["features.16.weight"] == (512, 4608)
    assert shapes["classifier.0.weight"] == (256, 512)
    assert shapes["classifier.3.weight"] == (10, 256)


def test_vgg_heads_by_layout():
    small = VGG16(in_channels=1, image_size=32, width=2, n_classes=5)
    large = VGG16(in_channels=1, image_size=32, width=2, n_classes=5, stem="imagenet")
    for model, expected in (
        (small, {"classifier.0": "linear", "classifier.3": "head"}),
        (large, {"classifier.0": "linear", "classifier.3": "linear", "classifier.6": "head"}),
    ):
        linear = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear)}
        assert {n: layer_role("vgg16", n, m) for n, m in linear.items()} == expected


# Multilayer perceptron


@pytest.mark.parametrize("normalisation", ["none", "layer"])
def test_mlp_is_what_its_formula_says(normalisation):
    model = MLP(in_features=64, width=7, depth=2, n_classes=4, normalisation=normalisation)
    randomise(model)
    shapes = {n: tuple(p.shape) for n, p in model.named_parameters() if p.dim() > 1}
    assert shapes == {"layers.0.weight": (7, 64), "layers.1.weight": (7, 7), "head.weight": (4, 7)}
    x = torch.randn(3, 1, 8, 8)
    hidden = x.flatten(1)
    for i in range(2):
        hidden = hidden @ model.layers[i].weight.T + model.layers[i].bias
        if normalisation == "layer":
            centred = hidden - hidden.mean(1, keepdim=True)
            hidden = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
            hidden = hidden * model.norms[i].weight + model.norms[i].bias
        hidden = hidden.clamp(min=0)
    expected = hidden @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model(x), expected)
    assert any("norms" in key for key in model.state_dict()) == (normalisation == "layer")


# Transformers


def torch_layer(width: int, heads: int, parts: dict[str, nn.Module], activation) -> nn.Module:
    """PyTorch's own pre-norm layer with the same weights."""
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, activation, batch_first=True, norm_first=True
    )
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(parts["qkv"].weight)
        layer.self_attn.in_proj_bias.copy_(parts["qkv"].bias)
    layer.self_attn.out_proj.load_state_dict(parts["proj"].state_dict())
    layer.linear1.load_state_dict(parts["up"].state_dict())
    layer.linear2.load_state_dict(parts["down"].state_dict())
    layer.norm1, layer.norm2 = parts["norm1"], parts["norm2"]
    return layer.double()


@pytest.mark.parametrize("normalisation", ["layer", "none"])
def test_gpt2_equals_torchs_layers(normalisation):
    model = randomise(build("gpt2", normalisation=normalisation)).double()
    x = inputs_of("gpt2")
    decoder = model.transformer
    hidden = decoder.wte.weight[x] + decoder.wpe.weight[torch.arange(CONTEXT)]
    mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT, dtype=torch.float64)
    for block in decoder.h:
        parts = {"norm1": block.ln_1, "norm2": block.ln_2, "qkv": block.attn.c_attn}
        parts |= {"proj": block.attn.c_proj, "up": block.mlp.c_fc, "down": block.mlp.c_proj}
        layer = torch_layer(8, 2, parts, lambda z: gelu(z, approximate="tanh"))
        hidden = layer(hidden, src_mask=mask)
    expected = decoder.ln_f(hidden) @ model.lm_head.weight.T
    torch.testing.assert_close(model(x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("normalisation", ["layer", "none"])
def test_vision_transformer_equals_torchs_layers(normalisation):
    model = randomise(build("vit_tiny", normalisation=normalisation)).double()
    x = inputs_of("vit_tiny").double()
    # Patches of 4 x 4 pixels, row by row.
    patches = x.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(3, 16, 48)
    embedded = patches @ model.patch_embed.proj.weight.flatten(1).T + model.patch_embed.proj.bias
    hidden = torch.cat([model.cls_token.expand(3, 1, 8), embedded], 1) + model.pos_embed
    for block in model.blocks:
        parts = {"norm1": block.norm1, "norm2": block.norm2, "qkv": block.attn.qkv}
        parts |= {"proj": block.attn.proj, "up": block.mlp.fc1, "down": block.mlp.fc2}
        hidden = torch_layer(8, 2, parts, "gelu")(hidden)
    expected = model.norm(hidden)[:, 0] @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model(x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "vit_tiny"])
def test_transformer_blocks_add_scaled_skips(name):
    model = randomise(build(name, skip_scale=0.25)).double()
    block = model.transformer.h[1] if name == "gpt2" else model.blocks[1]
    norm1, norm2 = (block.ln_1, block.ln_2) if name == "gpt2" else (block.norm1, block.norm2)
    x = torch.randn(2, CONTEXT, 8, dtype=torch.float64)
    middle = 0.25 * x + block.attn(norm1(x))
    torch.testing.assert_close(block(x), 0.25 * middle + block.mlp(norm2(middle)))


def test_gpt2_sees_no_later_token():
    model = randomise(build("gpt2")).double()
    x = inputs_of("gpt2")
    changed = x.clone()
    changed[:, 3] = (changed[:, 3] + 1) % VOCABULARY
    first, second = model(x), model(changed)
    assert torch.equal(first[:, :3], second[:, :3])
    assert not torch.isclose(first[:, 3:], second[:, 3:]).all(-1).any()


def test_gpt2_classifies_the_mean_position_with_the_same_body():
    language = build_model(settings("gpt2"), tokens(), seed=3)
    classifier = build_model(settings("gpt2"), tokens("classification"), seed=3)
    body, same = language.transformer.state_dict(), classifier.transformer.state_dict()
    assert body.keys() == same.keys()
    assert {k: v.shape for k, v in body.items()} == {k: v.shape for k, v in same.items()}
    x = inputs_of("gpt2")
    hidden = sum(classifier.transformer(x)[:, t] for t in range(CONTEXT)) / CONTEXT
    torch.testing.assert_close(classifier(x), hidden @ classifier.score.weight.T)
    assert classifier(x).shape == (3, CLASSES)
    assert language.lm_head.weight is not language.transformer.wte.weight


def test_gpt2_starts_as_gpt2_does():
    model = GPT2(n_tokens=200, context=100, width=64, depth=8, heads=4)
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            assert set(parameter.unique().tolist()) <= {0.0, 1.0}
            continue
        expected = 0.02 / math.sqrt(2 * 8) if name.endswith("c_proj.weight") else 0.02
        assert parameter.std().item() == pytest.approx(expected, rel=0.1), name


def test_roles_of_transformers():
    gpt2 = [f"transformer.h.{i}" for i in range(2)]
    vit = [f"blocks.{i}" for i in range(2)]
    expected = {
        "gpt2": {
            **{f"{h}.attn.c_attn": "attention_qkv" for h in gpt2},
            **{f"{h}.attn.c_proj": "attention_output" for h in gpt2},
            **{f"{h}.mlp.c_fc": "mlp_up" for h in gpt2},
            **{f"{h}.mlp.c_proj": "mlp_down" for h in gpt2},
            "lm_head": "head",
        },
        "vit_tiny": {
            "patch_embed.proj": "patch_embedding",
            **{f"{b}.attn.qkv": "attention_qkv" for b in vit},
            **{f"{b}.attn.proj": "attention_output" for b in vit},
            **{f"{b}.mlp.fc1": "mlp_up" for b in vit},
            **{f"{b}.mlp.fc2": "mlp_down" for b in vit},
            "head": "head",
        },
    }
    for name, roles in expected.items():
        layers = {
            n: m for n, m in build(name).named_modules() if isinstance(m, nn.Linear | nn.Conv2d)
        }
        assert {n: layer_role(name, n, m) for n, m in layers.items()} == roles
    assert layer_role("gpt2", "score", nn.Linear(2, 2)) == "head"


def test_vit_tiny_has_the_published_size():
    # 5,717,416 parameters at 224 pixels and 1000 classes.
    with torch.device("meta"):
        model = VisionTransformer(
            in_channels=3, image_size=224, patch=16, width=192, depth=12, heads=3, n_classes=1000
        )
    assert sum(p.numel() for p in model.parameters()) == 5_717_416


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match=r"curvature\.models\.\*\.patch: image_size 16 .* patch 5"):
        build("vit_tiny", patch=5)
    with pytest.raises(ValueError, match="width 8 is no multiple of heads 3"):
        GPT2(n_tokens=5, context=4, width=8, depth=1, heads=3)
    with pytest.raises(ValueError, match="'alexnet' is none of"):
        layer_role("alexnet", "fc", nn.Linear(2, 2))
    with pytest.raises(ValueError, match="a BatchNorm2d has no role"):
        layer_role("resnet18", "bn1", nn.BatchNorm2d(2))
