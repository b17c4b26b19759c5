"""The methods of the race as objects with one learning rate."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, AdamW, Muon, Optimizer

from spectral_laws.optimizers.parameter_groups import parameter_groups
from spectral_laws.optimizers.spectral_newton import SpectralNewton
from spectral_laws.settings.optimizers import Method

_ADAM_DECAY = 0.999
_SOAP_DECAY = 0.95


class ScheduledOptimizer:
    """One or two optimizers of one model under one learning rate.

    Attributes:
        optimizers: each group's rate is the common one times its ``rate_factor``, or times 1.
    """

    def __init__(self, optimizers: Sequence[Optimizer], before_step: Callable[[], None]) -> None:
        self.optimizers = tuple(optimizers)
        self._before_step = before_step

    def step(self, learning_rate: float) -> None:
        """One update from the gradients that the parameters hold."""
        self._before_step()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * group.get("rate_factor", 1.0)
            optimizer.step()


def build_optimizer(
    model: nn.Module,
    method: Method,
    *,
    weight_decay: float,
    alphas: Mapping[str, float] | None = None,
    layer_rates: Mapping[str, float] | None = None,
) -> ScheduledOptimizer:
    """The optimizer of a method for a model.

    Muon and Spectral Newton update the same matrices and leave the rest to AdamW, with the update
    scale of ``match_rms_adamw``, so that one learning rate suits both. Vectors have no weight decay
    except under SGD, whose penalty is on all parameters. SOAP is that of ``pytorch_optimizer``: its
    first step only fills its averages, and both of its decay rates are those of its authors.
    ``alphas`` are measured exponents by layer, ``layer_rates`` factors of the learning rate (SGD
    and AdamW alone), 1 for all other layers.
    """
    rates = layer_rates or {}
    if rates and method.optimizer not in ("sgd", "adamw"):
        raise ValueError(f"{method.optimizer} has no learning rates per layer")
    momentum = method.momentum
    if method.optimizer == "sgd":
        groups = _groups(model, weight_decay, rates, scale=1 / (method.damping or 1), vectors=True)
        return _alone(SGD(groups, lr=0.0, momentum=momentum))
    if method.optimizer == "adamw":
        groups = _groups(model, weight_decay, rates)
        return _alone(AdamW(groups, betas=(momentum, _ADAM_DECAY)))
    if method.optimizer == "soap":
        groups = _groups(model, weight_decay, rates)
        # Here, because it takes a second to load and no other method needs it.
        from pytorch_optimizer import SOAP

        return _alone(SOAP(groups, betas=(momentum, _SOAP_DECAY)))
    if method.optimizer == "muon":
        return _muon(model, momentum, weight_decay)
    alpha = alphas if method.alpha == "measured" else method.alpha
    if alpha is None or method.damping is None:
        raise ValueError("spectral_newton needs damping, and alpha or measured exponents")
    return _alone(
        SpectralNewton(
            parameter_groups(model, alpha=alpha),
            damping=method.damping,
            momentum=momentum,
            weight_decay=weight_decay,
        )
    )


def _alone(optimizer: Optimizer) -> ScheduledOptimizer:
    return ScheduledOptimizer([optimizer], lambda: None)


def _muon(model: nn.Module, momentum: float, weight_decay: float) -> ScheduledOptimizer:
    """torch.optim.Muon takes matrices only: kernels are given to it as (out, rest) views."""
    matrices: list[tuple[Tensor, nn.Parameter]] = []
    rest: list[dict[str, Any]] = []
    for group in parameter_groups(model):
        if "alpha" in group:
            # Not flatten, which may copy: the copy would be trained in the weight's place.
            flat = [nn.Parameter(p.detach().view(len(p), -1)) for _, p in group["params"]]
            matrices += zip((p for _, p in group["params"]), flat, strict=True)
        else:
            decay = group.get("weight_decay", weight_decay)
            rest.append({"params": group["params"], "weight_decay": decay})

    def pass_gradients_on() -> None:
        for parameter, flat in matrices:
            flat.grad = None if parameter.grad is None else parameter.grad.flatten(1)

    optimizers: list[Optimizer] = [
        Muon(
            [flat for _, flat in matrices],
            momentum=momentum,
            weight_decay=weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )
    ]
    if rest:
        optimizers.append(AdamW(rest))
    return ScheduledOptimizer(optimizers, pass_gradients_on)


def _groups(
    model: nn.Module,
    weight_decay: float,
    layer_rates: Mapping[str, float],
    *,
    scale: float = 1.0,
    vectors: bool = False,
) -> list[dict[str, Any]]:
    """Parameters by the factor of their rate and by their weight decay."""
    factors = _rate_factors(model, layer_rates)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        decay = weight_decay if vectors or parameter.ndim >= 2 else 0.0
        factor = scale * factors.get(parameter, 1.0)
        groups.setdefault((factor, decay), []).append(parameter)
    return [
        {"params": members, "rate_factor": factor, "weight_decay": decay}
        for (factor, decay), members in groups.items()
    ]


def _rate_factors(model: nn.Module, layer_rates: Mapping[str, float]) -> dict[nn.Parameter, float]:
    """Factor of each parameter that a named layer owns."""
    factors: dict[nn.Parameter, float] = {}
    modules = dict(model.named_modules())
    for layer, factor in layer_rates.items():
        if not (math.isfinite(factor) and factor > 0):
            raise ValueError(f"learning-rate factor of layer {layer!r} is {factor}, not positive")
        owned = list(modules[layer].parameters(recurse=False)) if layer in modules else []
        if not owned:
            raise ValueError(f"{layer!r} is no layer with parameters of its own")
        for parameter in owned:
            if factors.setdefault(parameter, factor) != factor:
                raise ValueError(f"layer {layer!r} shares a weight that has another factor")
    return factors
