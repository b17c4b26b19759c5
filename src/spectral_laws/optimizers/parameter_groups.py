"""Which parameters of a model are matrices, and with which alpha: groups for Spectral Newton."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

_log = logging.getLogger(__name__)

_MATRIX_MODULES = (nn.Linear, _ConvNd, nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


def parameter_groups(
    model: nn.Module,
    *,
    alpha: float | Mapping[str, float] = 2.0,
    default_alpha: float = 2.0,
    adamw: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Parameter groups of a model for :class:`spectral_laws.optimizers.SpectralNewton`.

    Matrices are the weights of linear, convolutional, recurrent and attention layers, and of the
    ``Conv1D`` of Hugging Face's GPT-2. Embeddings, biases, gains of normalisations and every other
    parameter go to AdamW, where vectors have no weight decay. A weight that a layer shares with an
    embedding is the embedding's, unless ``alpha`` names it. :func:`describe_groups` says what went
    where; a model without any matrix is reported in the log.

    Args:
        model: any network; parameters that need no gradient are left out.
        alpha: one exponent, or one per layer by its module name (or its parameter's, which goes
            before its layer's), as a table of measured exponents has them. A weight that several
            layers share has the names of all.
        default_alpha: of matrices that ``alpha`` does not name.
        adamw: names of layers, or of parameters, whose matrices go to AdamW too, for instance the
            head, whatever ``alpha`` says of them.

    Returns:
        Groups with named parameters: the matrices (each in a group of its own if ``alpha`` is per
        layer, so that a stored state fits whatever the exponents are), AdamW's matrices, vectors.

    Raises:
        ValueError: if a name is no layer with a matrix of its own, or none of its matrices is
            trained; if two names of one weight have different exponents; if ``adamw`` is a string.
    """
    if isinstance(adamw, str):
        raise ValueError(f"adamw must be a collection of names, [{adamw!r}] say, got {adamw!r}")
    matrices, layers = _matrices(model)
    measured = alpha if isinstance(alpha, Mapping) else {}
    for name in (*measured, *adamw):
        _check_trained(name, {**layers, **matrices})
    exponents = _exponents(measured, layers) | _exponents(measured, matrices)
    left = {id(p) for name in adamw for p in (layers.get(name) or matrices[name])}
    owned = {id(p) for found in matrices.values() for p in found}
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, _EMBEDDINGS)}
    spectral: list[dict[str, Any]] = []
    decayed: list[tuple[str, nn.Parameter]] = []
    vectors: list[tuple[str, nn.Parameter]] = []
    for name, parameter in model.named_parameters():
        key = id(parameter)
        if not parameter.requires_grad:
            continue
        if key in owned - left and (key in exponents or key not in embedded):
            if alpha is measured or not spectral:
                own = exponents.get(key, default_alpha) if alpha is measured else alpha
                spectral.append({"params": [], "alpha": own})
            spectral[-1]["params"].append((name, parameter))
        else:
            (vectors if parameter.ndim < 2 else decayed).append((name, parameter))
    if not spectral:
        _log.warning(
            "no matrix is left to the spectral update, all parameters go to AdamW: weights are "
            "found in linear, convolutional, recurrent and attention layers of torch"
        )
    rest = [
        {"params": decayed, "adamw": True},
        {"params": vectors, "adamw": True, "weight_decay": 0.0},
    ]
    return [group for group in (*spectral, *rest) if group["params"]]


def describe_groups(groups: Iterable[Mapping[str, Any]]) -> str:
    """What :func:`parameter_groups` made, one line per parameter: update, shape and name."""
    lines = []
    for group in groups:
        update = "AdamW" if group.get("adamw") else f"spectral, alpha {group['alpha']:g}"
        for name, parameter in group["params"]:
            shape = " x ".join(map(str, parameter.shape)) or "1"
            lines.append(f"{update:<20} {shape:<20} {name}")
    return "\n".join(lines)


def _exponents(
    alpha: Mapping[str, float], known: Mapping[str, Sequence[nn.Parameter]]
) -> dict[int, float]:
    """Exponents by ``id`` of the parameters that go by the names in ``known``."""
    found: dict[int, float] = {}
    for name, value in alpha.items():
        for parameter in known.get(name, ()):
            if found.setdefault(id(parameter), value) != value:
                raise ValueError(
                    f"alpha: {name!r} shares its weight with a layer that has another exponent, "
                    f"{value:g} and {found[id(parameter)]:g}"
                )
    return found


def _check_trained(name: str, known: Mapping[str, Sequence[nn.Parameter]]) -> None:
    if name not in known:
        raise ValueError(f"{name!r} is no layer with a matrix of its own")
    if not any(parameter.requires_grad for parameter in known[name]):
        raise ValueError(f"{name!r} is frozen: no matrix of it needs a gradient")


def _matrices(
    model: nn.Module,
) -> tuple[dict[str, list[nn.Parameter]], dict[str, list[nn.Parameter]]]:
    """Matrices by every name that a parameter has, and by every name of a layer."""
    matrices: dict[str, list[nn.Parameter]] = {}
    layers: dict[str, list[nn.Parameter]] = {}
    for layer, module in model.named_modules(remove_duplicate=False):
        if not _has_matrices(module):
            continue
        for name, parameter in module.named_parameters(prefix=layer, recurse=False):
            if parameter.ndim >= 2 and "weight" in name.removeprefix(layer):
                matrices[name] = [parameter]
                layers.setdefault(layer, []).append(parameter)
    return matrices, layers


def _has_matrices(module: nn.Module) -> bool:
    hugging_face = type(module).__name__ == "Conv1D"  # a Linear whose weight is stored as (in, out)
    return isinstance(module, _MATRIX_MODULES) or hugging_face
