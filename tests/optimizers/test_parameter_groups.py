"""Which parameters are matrices, and with which alpha."""

import pytest
import torch
from torch import nn

from spectral_laws.optimizers.parameter_groups import describe_groups, parameter_groups


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


def test_a_parameters_own_name_is_honoured_and_goes_before_its_layers():
    groups = parameter_groups(
        Network(),
        alpha={"rnn.weight_hh_l0": 0.5, "rnn": 1.5, "conv.weight": 0.7},
        adamw=["head.weight"],
    )
    alphas = {name: group.get("alpha") for group in groups for name in names(group)}
    assert (alphas["rnn.weight_ih_l0"], alphas["rnn.weight_hh_l0"]) == (1.5, 0.5)
    assert (alphas["conv.weight"], alphas["head.weight"]) == (0.7, None)


class Tied(nn.Module):
    """Two layers of one weight, and a head that is the embedding, registered in either order."""

    def __init__(self, *, head_first):
        super().__init__()
        parts = [("embedding", nn.Embedding(5, 4)), ("out", nn.Linear(4, 5, bias=False))]
        for name, module in parts[::-1] if head_first else parts:
            self.add_module(name, module)
        self.out.weight = self.embedding.weight
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight


@pytest.mark.parametrize("head_first", [False, True])
def test_a_shared_weight_goes_by_the_names_of_all_its_layers(head_first):
    model = Tied(head_first=head_first)

    def updates(**options):
        groups = parameter_groups(model, **options)
        return {id(p): group.get("alpha") for group in groups for _, p in group["params"]}

    shared, embedding = id(model.a.weight), id(model.embedding.weight)
    assert updates()[shared] == 2.0
    for name in ("a", "b", "a.weight", "b.weight"):
        assert updates(alpha={name: 0.7})[shared] == 0.7
        assert updates(adamw=[name])[shared] is None
    assert updates(alpha={"a": 0.7, "b": 0.7})[shared] == 0.7
    with pytest.raises(ValueError, match=r"alpha: 'b' shares .* 0\.9 and 0\.7"):
        updates(alpha={"a": 0.7, "b": 0.9})
    assert updates()[embedding] is None
    assert updates(alpha={"out": 1.2})[embedding] == 1.2
    assert updates(alpha={"out": 1.2}, adamw=["out"])[embedding] is None


def test_a_name_that_nothing_could_be_done_about():
    model = Network()
    model.head.weight.requires_grad_(False)
    for options in ({"alpha": {"head": 1.0}}, {"adamw": ["head"]}, {"adamw": ["head.weight"]}):
        with pytest.raises(ValueError, match=r"'head.*' is frozen"):
            parameter_groups(model, **options)
    with pytest.raises(ValueError, match=r"adamw must be a collection of names, \['head'\] say"):
        parameter_groups(Network(), adamw="head")


class Conv1D(nn.Module):
    """As GPT-2 of Hugging Face has it."""

    def __init__(self, n_out, n_in):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))


def test_hugging_faces_conv1d_is_a_matrix(caplog):
    (spectral, vectors) = parameter_groups(nn.Sequential(Conv1D(6, 4)), alpha=1.5)
    assert (names(spectral), names(vectors)) == (["0.weight"], ["0.bias"])
    assert not caplog.records


def test_what_went_where_is_said(caplog):
    lines = describe_groups(parameter_groups(Network(), alpha={"conv": 1.5})).splitlines()
    assert lines[0].split() == ["spectral,", "alpha", "1.5", "4", "x", "1", "x", "3", "x", "3",
                                "conv.weight"]  # fmt: skip
    assert lines[-1].split() == ["AdamW", "2", "head.bias"]
    assert len(lines) == len(list(Network().parameters()))
    assert not caplog.records
    parameter_groups(nn.Embedding(3, 4))
    assert "no matrix is left to the spectral update" in caplog.text


@pytest.mark.parametrize("options", [{"alpha": {"haed": 1.0}}, {"adamw": ["norm"]}])
def test_a_name_that_is_no_matrix(options):
    with pytest.raises(ValueError, match="is no layer with a matrix of its own"):
        parameter_groups(Network(), **options)
