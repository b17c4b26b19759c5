"""What each method makes of the singular values of a real gradient."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.training.train import cross_entropy_of
from spectral_laws.device import find_device
from spectral_laws.errors import DataError
from spectral_laws.optimizers.methods import build_optimizer
from spectral_laws.optimizers.race import Task, method_alphas
from spectral_laws.settings.optimizers import Method, ResponseSettings


def measure_responses(
    task: Task, exponents: pd.DataFrame | None, settings: ResponseSettings
) -> pd.DataFrame:
    """Update spectra T(sigma): each method's update along the singular directions of a gradient.

    The gradient G = U diag(sigma) V^T of the mean loss of ``responses.samples`` training samples,
    at initial weights of the race, is given to the method ``responses.steps`` times, without weight
    decay. Of the last update, W_before - W_after at learning rate 1, the table has the diagonal T_k
    = u_k^T update v_k, and its share of the update's squared norm: methods that act on entries
    (AdamW) or in other bases (SOAP) leave the gradient's directions. Directions at the gradient's
    rounding are left out. ``exponents`` is the table of ``fit_exponents``, for measured alphas.

    Raises:
        DataError: if a layer is none of the network's, or has no gradient.
    """
    seed = rng.torch_seed(task.seed, "race", 0)
    rows: list[dict[str, Any]] = []
    for name, method in settings.methods.items():
        model = task.network(seed).to(find_device(task.device))
        layers = _layers(model, settings.responses.layers)
        gradients = _gradients(model, task.samples, settings.responses.samples)
        alphas = method_alphas(task, method, exponents)
        updates = _updates(model, gradients, method, alphas, settings.responses.steps)
        for layer, parameter in layers.items():
            gradient = gradients[parameter].flatten(1)
            for row in _response(gradient, updates[parameter].flatten(1), layer):
                rows.append({"race": task.name, "method": name, "layer": layer, **row})
    return pd.DataFrame(rows)


def _layers(model: nn.Module, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Weight of each named layer."""
    modules = dict(model.named_modules())
    weights: dict[str, Tensor] = {}
    for name in names:
        weight = getattr(modules.get(name), "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim < 2:
            raise DataError(f"responses.layers: the network has no layer {name!r} with a matrix")
        weights[name] = weight
    return weights


def _gradients(model: nn.Module, samples: Samples, size: int) -> dict[Tensor, Tensor]:
    """Gradient of the mean loss of the first ``size`` training samples, by parameter."""
    device = next(model.parameters()).device
    inputs = torch.from_numpy(samples.train_inputs[:size]).to(device)
    targets = torch.from_numpy(samples.train_targets[:size]).to(device)
    model.train()
    cross_entropy_of(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
    return {p: p.grad.clone() for p in model.parameters() if p.grad is not None}


@torch.no_grad()
def _updates(
    model: nn.Module,
    gradients: Mapping[Tensor, Tensor],
    method: Method,
    alphas: Mapping[str, float] | None,
    steps: int,
) -> dict[Tensor, Tensor]:
    """W_before - W_after of the last of several steps.

    Without weight decay no method looks at the weights. They are set to zero before every step, so
    that small updates are not rounded to the precision of large weights.
    """
    optimizer = build_optimizer(model, method, weight_decay=0.0, alphas=alphas)
    for _ in range(steps):
        for parameter, gradient in gradients.items():
            parameter.zero_()
            parameter.grad = gradient.clone()
        optimizer.step(1.0)
    return {p: -p for p in gradients}


def _response(gradient: Tensor, update: Tensor, layer: str) -> list[dict[str, float]]:
    u, sigma, vt = np.linalg.svd(gradient.double().cpu().numpy(), full_matrices=False)
    if not sigma[0] > 0:
        raise DataError(f"responses.layers: the gradient of layer {layer!r} is zero")
    moved = update.double().cpu().numpy()
    diagonal = np.einsum("ik,ij,kj->k", u, moved, vt, optimize=True)
    norm = float((moved**2).sum())
    share = float((diagonal**2).sum()) / norm if norm > 0 else 0.0
    resolved = sigma > sigma[0] * max(gradient.shape) * float(torch.finfo(torch.float32).eps)
    return [
        {"k": k + 1, "sigma": sigma[k], "response": diagonal[k], "diagonal_share": share}
        for k in range(len(sigma))
        if resolved[k]
    ]
