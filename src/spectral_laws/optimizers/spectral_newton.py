"""Spectral Newton as an optimizer: matrices by their singular values, everything else by AdamW."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw
from torch.optim.optimizer import ParamsT

from spectral_laws.errors import NumericalError
from spectral_laws.optimizers.spectral_update import spectral_factor

AdjustLR = Literal["original", "match_rms_adamw"]


class SpectralNewton(Optimizer):
    r"""W <- (1 - lr weight_decay) W - lr c U diag(T(sigma)) V^T for every matrix W.

    U diag(sigma) V^T is the average of its gradients, T(sigma) = sigma / (sigma^alpha + damping),
    see :func:`spectral_laws.optimizers.spectral_update`. Where the loss curvature along the
    singular directions of the present gradient is h ~ sigma^alpha, this is Newton's direction,
    damped. With ``relative`` its length does not shrink with the gradient: let the learning rate
    decay, and expect full steps of a layer whose gradient has nearly vanished.

    Parameters with two or more axes are matrices of shape (first axis, rest), as convolution
    kernels are. All others, and those of groups with ``adamw=True``, get AdamW's update.
    :func:`spectral_laws.optimizers.parameter_groups` makes the groups of a model.

    Averages and the shape factor c are those of ``torch.optim.Muon``: M <- momentum M +
    (1 - momentum) G, with Nesterov's look-ahead (1 - momentum) G + momentum M. With
    ``match_rms_adamw`` a learning rate is of AdamW's size or up to ten times that, and one suits
    both kinds.

    Args:
        params: parameters, (name, parameter) pairs, or groups of either. With names, errors and
            states speak of them.
        lr: learning rate.
        alpha: curvature exponent, at least 0: a constant, or one per group.
        damping: of T, above 0; in units of the largest sigma^alpha if ``relative``.
        momentum: of the averages, in [0, 1).
        nesterov: whether to look ahead.
        weight_decay: decoupled, in both kinds of updates.
        relative: divide sigma by its largest value, so that the scale of the loss is irrelevant.
            Without, gradients of small sigma are just divided by the damping.
        adjust_lr_fn: c of an (a, b) matrix: ``match_rms_adamw`` is 0.2 sqrt(max(a, b)),
            ``original`` is sqrt(max(1, a / b)).
        adamw: update everything in a group by AdamW.
        adamw_betas: decay rates of AdamW's averages.
        adamw_eps: AdamW's epsilon.

    Raises:
        ValueError: if an option is out of its range, naming it.
        NumericalError: by :meth:`step`, before anything is changed, if a gradient is not finite.

    Source: curvature paper, Spectral Newton. Kernels are flattened and the scale is Muon's.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        *,
        alpha: float = 2.0,
        damping: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        relative: bool = True,
        adjust_lr_fn: AdjustLR = "match_rms_adamw",
        adamw: bool = False,
        adamw_betas: tuple[float, float] = (0.9, 0.999),
        adamw_eps: float = 1e-8,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "damping": damping,
                "momentum": momentum,
                "nesterov": nesterov,
                "weight_decay": weight_decay,
                "relative": relative,
                "adjust_lr_fn": adjust_lr_fn,
                "adamw": adamw,
                "adamw_betas": adamw_betas,
                "adamw_eps": adamw_eps,
            },
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its options default to those of the optimizer."""
        _check_options({**self.defaults, **param_group})
        super().add_param_group(param_group)
        for name, parameter in _named(self.param_groups[-1], len(self.param_groups) - 1):
            if not parameter.is_floating_point():
                self.param_groups.pop()
                raise ValueError(f"{name} is {parameter.dtype}; only real numbers can be trained")

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # as torch's own optimizers are
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401  (torch's own)
        """One update of every parameter that has a gradient; returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        _check_gradients(self.param_groups)
        for group in self.param_groups:
            trained = [p for p in group["params"] if p.grad is not None and p.numel()]
            matrices = [p for p in trained if p.ndim >= 2 and not group["adamw"]]
            for parameter in matrices:
                with torch.autocast(parameter.device.type, enabled=False):
                    self._spectral_step(parameter, group)
            chosen = {id(p) for p in matrices}
            self._adamw_step([p for p in trained if id(p) not in chosen], group)
        return loss

    def _spectral_step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient, momentum, lr = parameter.grad, group["momentum"], float(group["lr"])
        assert gradient is not None
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        average = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        seen = gradient.lerp(average, momentum) if group["nesterov"] else average
        matrix = seen.flatten(1)
        rows, columns = matrix.shape
        factor = spectral_factor(
            matrix, alpha=group["alpha"], damping=group["damping"], relative=group["relative"]
        )
        matrix = matrix.to(factor.dtype)
        kept = 1 - lr * group["weight_decay"]
        moved = -lr * shape_factor(rows, columns, group["adjust_lr_fn"])
        pair = (matrix, factor) if rows > columns else (factor, matrix)
        flat = parameter.flatten(1)  # itself, or a copy where memory is laid out otherwise
        new = torch.addmm(flat.to(factor.dtype), *pair, beta=kept, alpha=moved)
        parameter.copy_(new.view_as(parameter))

    def _adamw_step(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        states = [self.state[parameter] for parameter in parameters]
        for parameter, state in zip(parameters, states, strict=True):
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        if parameters:
            adamw(
                parameters,
                [p.grad for p in parameters if p.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                amsgrad=False,
                beta1=group["adamw_betas"][0],
                beta2=group["adamw_betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["adamw_eps"],
                maximize=False,
            )


def shape_factor(rows: int, columns: int, adjust_lr_fn: AdjustLR) -> float:
    """Muon's factor c of the learning rate of a (rows, columns) matrix."""
    if adjust_lr_fn == "original":
        return math.sqrt(max(1.0, rows / columns))
    return 0.2 * math.sqrt(max(rows, columns))


def _check_options(group: dict[str, Any]) -> None:
    for option in ("lr", "alpha", "damping", "momentum", "weight_decay", "adamw_eps"):
        if not isinstance(group[option], int | float | Tensor):
            raise ValueError(f"{option} must be a number, got {group[option]!r}")
    for option in ("lr", "alpha", "weight_decay", "adamw_eps"):
        if not (math.isfinite(group[option]) and group[option] >= 0):
            raise ValueError(f"{option} must be finite and at least 0, got {group[option]}")
    if not (math.isfinite(group["damping"]) and group["damping"] > 0):
        raise ValueError(f"damping must be finite and above 0, got {group['damping']}")
    for option, values in (
        ("momentum", [group["momentum"]]),
        ("adamw_betas", group["adamw_betas"]),
    ):
        if not all(0 <= value < 1 for value in values) or len(values) not in (1, 2):
            raise ValueError(f"{option} must lie in [0, 1), got {group[option]}")
    if group["adjust_lr_fn"] not in get_args(AdjustLR):
        raise ValueError(f"adjust_lr_fn is none of {get_args(AdjustLR)}")


def _check_gradients(groups: list[dict[str, Any]]) -> None:
    """Refuse sparse and non-finite gradients, before anything is changed."""
    gradients = {
        name: parameter.grad
        for index, group in enumerate(groups)
        for name, parameter in _named(group, index)
        if parameter.grad is not None
    }
    for name, gradient in gradients.items():
        if gradient.is_sparse:
            raise ValueError(f"{name} has a sparse gradient")
    # A sum is not finite if any of its terms is not; the reverse is looked into.
    if math.isfinite(sum(gradient.sum(dtype=torch.float32) for gradient in gradients.values())):
        return
    for name, gradient in gradients.items():
        if not torch.isfinite(gradient).all():
            raise NumericalError(f"{name} has a gradient that is not finite; nothing was changed")


def _named(group: dict[str, Any], index: int) -> Iterator[tuple[str, Tensor]]:
    """Parameters with what to call them in an error."""
    parameters = group["params"]
    names = group.get("param_names")
    for i, parameter in enumerate(parameters):
        name = f"{names[i]!r}" if names else f"{i} of group {index}, {tuple(parameter.shape)},"
        yield f"parameter {name}", parameter
