"""Which parameters of a model are matrices, and with which alpha: groups for Spectral Newton."""

from collections.abc import Collection, Mapping
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

_MATRIX_MODULES = (nn.Linear, _ConvNd, nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase)


def parameter_groups(
    model: nn.Module,
    *,
    alpha: float | Mapping[str, float] = 2.0,
    default_alpha: float = 2.0,
    adamw: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Parameter groups of a model for :class:`spectral_laws.optimizers.SpectralNewton`.

    Matrices are the weights of linear, convolutional, recurrent and attention layers. Embeddings,
    biases, gains of normalisations and every other parameter go to AdamW, where vectors have no
    weight decay.

    Args:
        model: any network; parameters that need no gradient are left out.
        alpha: one exponent, or one per layer by its module name (or its parameter's, where a
            layer has several matrices), as a table of measured exponents has them.
        default_alpha: of matrices in layers that ``alpha`` does not name.
        adamw: module names of layers whose matrices go to AdamW too, for instance the head.

    Returns:
        Groups with named parameters: the matrices (each in a group of its own if ``alpha`` is per
        layer, so that a stored state fits whatever the exponents are), AdamW's matrices, vectors.

    Raises:
        ValueError: if a name is no layer with matrices of its own.
    """
    owners = _matrix_owners(model)
    measured, default = (alpha, default_alpha) if isinstance(alpha, Mapping) else ({}, alpha)
    for name in (*measured, *adamw):
        if name not in owners.values() and name not in owners:
            raise ValueError(f"{name!r} is no layer with a matrix of its own")
    spectral: list[dict[str, Any]] = []
    alone = isinstance(alpha, Mapping)
    decayed: list[tuple[str, nn.Parameter]] = []
    vectors: list[tuple[str, nn.Parameter]] = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        layer = owners.get(name)
        if layer is not None and layer not in adamw:
            own = measured.get(name, measured.get(layer, default))
            if alone or not spectral:
                spectral.append({"params": [], "alpha": own})
            spectral[-1]["params"].append((name, parameter))
        else:
            (vectors if parameter.ndim < 2 else decayed).append((name, parameter))
    rest = [
        {"params": decayed, "adamw": True},
        {"params": vectors, "adamw": True, "weight_decay": 0.0},
    ]
    return [group for group in (*spectral, *rest) if group["params"]]


def _matrix_owners(model: nn.Module) -> dict[str, str]:
    """Layer of each matrix, by the parameter's name; a shared one has the first layer's."""
    owners: dict[str, str] = {}
    for layer, module in model.named_modules():
        if isinstance(module, _MATRIX_MODULES):
            for name, parameter in module.named_parameters(prefix=layer, recurse=False):
                if parameter.ndim >= 2 and "weight" in name.removeprefix(layer):
                    owners[name] = layer
    return owners
