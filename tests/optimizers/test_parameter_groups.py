"""Which parameters are matrices, and with which alpha."""

import pytest
import torch
from torch import nn

from spectral_laws.optimizers.parameter_groups import parameter_groups


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.position = nn.Parameter(torch.zeros(1, 3, 4))
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.attention = nn.MultiheadAttention(4, 2, add_bias_kv=True)
        self.rnn = nn.GRU(4, 4)
        self.head = nn.Linear(4, 2)


def names(group):
    return [name for name, _ in group["params"]]


def test_matrices_and_the_rest():
    spectral, decayed, vectors = parameter_groups(Network())
    assert names(spectral) == [
        "conv.weight",
        "attention.in_proj_weight",
        "attention.out_proj.weight",
        "rnn.weight_ih_l0",
        "rnn.weight_hh_l0",
        "head.weight",
    ]
    assert spectral["alpha"] == 2.0
    assert names(decayed) == [
        "position",
        "embedding.weight",
        "attention.bias_k",
        "attention.bias_v",
    ]
    assert decayed["adamw"]
    assert "norm.weight" in names(vectors)
    assert "head.bias" in names(vectors)
    assert vectors["adamw"]
    assert vectors["weight_decay"] == 0.0


def test_every_parameter_is_in_one_group():
    model = Network()
    given = [p for group in parameter_groups(model) for _, p in group["params"]]
    assert len(given) == len({id(p) for p in given}) == len(list(model.parameters()))


def test_alpha_per_layer():
    groups = parameter_groups(
        Network(),
        alpha={
            "conv": 2.1,
            "head": 1.3,
            "attention.out_proj": 1.3,
            "attention.in_proj_weight": 0.9,
        },
        default_alpha=1.7,
    )
    found = [(group["alpha"], names(group)) for group in groups if "alpha" in group]
    assert found == [
        (2.1, ["conv.weight"]),
        (0.9, ["attention.in_proj_weight"]),
        (1.3, ["attention.out_proj.weight"]),
        (1.7, ["rnn.weight_ih_l0"]),
        (1.7, ["rnn.weight_hh_l0"]),
        (1.3, ["head.weight"]),
    ]


def test_layers_that_are_left_to_adamw():
    spectral, decayed, _ = parameter_groups(Network(), adamw=["head"])
    assert "head.weight" not in names(spectral)
    assert "head.weight" in names(decayed)


def test_frozen_parameters_are_left_out():
    model = Network()
    model.head.weight.requires_grad_(False)
    assert "head.weight" not in [n for group in parameter_groups(model) for n in names(group)]


def test_a_weight_tied_to_an_embedding_goes_to_adamw():
    model = Network()
    model.out = nn.Linear(4, 5, bias=False)
    model.out.weight = model.embedding.weight
    spectral, decayed, _ = parameter_groups(model)
    assert "out.weight" not in names(spectral)
    assert "embedding.weight" in names(decayed)


@pytest.mark.parametrize("options", [{"alpha": {"haed": 1.0}}, {"adamw": ["norm"]}])
def test_a_name_that_is_no_matrix(options):
    with pytest.raises(ValueError, match="is no layer with a matrix of its own"):
        parameter_groups(Network(), **options)
