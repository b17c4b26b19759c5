"""Gauss-Newton curvatures of all layers: by shared reverse passes, or by forward tangents."""

import logging
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from spectral_laws.curvature.derivatives.gradients import SingularDirections
from spectral_laws.curvature.derivatives.problem import Batch
from spectral_laws.curvature.derivatives.tangent import tangent_curvatures
from spectral_laws.curvature.derivatives.tape import TapeError
from spectral_laws.curvature.introspection.layers import (
    Call,
    Layer,
    differentiable_weights,
    recorded_calls,
)

_log = logging.getLogger(__name__)


def gauss_newton_curvatures(
    batch: Batch,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    *,
    irregular: Collection[str] = (),
    label: str | None = None,
) -> tuple[list[Tensor], float]:
    r"""Gauss-Newton quadratic forms h_k = (1/N) sum_i (J_i d_k)^T H_i (J_i d_k), d_k = u_k v_k^T.

    J_i is the Jacobian of sample i's logits in the layer's weight (of one position's, for language)
    and H_i = diag(p_i) - p_i p_i^T the Hessian of its cross-entropy in the logits, with or without
    label smoothing. Equal to the exact Hessian's quadratic form where ``structure`` says so.

    The reverse pass costs C - 1 backward passes for all layers and directions together, the forward
    one about half a forward pass for each direction; the cheaper is taken. ``irregular`` names
    layers that the reverse pass cannot treat. Returned are the (K,) float64 curvatures per layer,
    and the mean loss of the batch.
    """
    with torch.no_grad():
        logits = batch.logits(batch.inputs[:2])
    possible = logits.dim() == 2 and not any(layer.name in irregular for layer in layers)
    n_directions = sum(len(found.values) for found in directions)
    if possible and logits.shape[-1] - 1 <= n_directions / 2:
        return reverse_gauss_newton(batch, layers, directions, label=label)
    try:
        found = tangent_curvatures(batch, layers, directions, second_order=False, label=label)
    except TapeError as error:
        if not possible:
            raise
        _log.warning("taking the reverse Gauss-Newton pass, which is slower here: %s", error)
        return reverse_gauss_newton(batch, layers, directions, label=label)
    return found.gauss_newton, found.loss


def reverse_gauss_newton(
    batch: Batch,
    layers: Sequence[Layer],
    directions: Sequence[SingularDirections],
    *,
    label: str | None = None,
) -> tuple[list[Tensor], float]:
    r"""The same by reverse passes, for logits (B, C) and layers that are called once.

    With H_i = sum_r w_ir w_ir^T over C - 1 columns,

        h_k = (1/B) sum_i sum_r t_irk^2,  t_irk = sum_s (u_k . delta_irs) (v_k . a_is),

    where delta_irs is the gradient of w_ir . logits_i in the layer's output at position s and a_is
    the layer's input there (a patch, for a convolution). One backward pass per column serves every
    layer and direction; no second derivative is taken, and memory does not grow with B.
    """
    work = [_Contraction(layer, found) for layer, found in zip(layers, directions, strict=True)]
    loss = 0.0
    with differentiable_weights(batch.model, layers):
        for x, y in batch.chunks(label):
            with recorded_calls(layers) as recording:
                logits = batch.logits(x)
            loss += batch.summed_loss(logits.detach(), y).item()
            called, edges = [], []
            for contraction, call, edge in recording.reached(layers, work):
                contraction.start_chunk(call)
                called.append(contraction)
                edges.append(edge)
            if not edges:
                continue
            columns, norms = output_hessian_root(logits.detach())
            for r in range(columns.shape[2]):
                cotangent = columns[:, :, r].to(logits.dtype)
                deltas = torch.autograd.grad(logits, edges, cotangent, retain_graph=True)
                for contraction, delta in zip(called, deltas, strict=True):
                    contraction.add(delta, norms[:, r])
    n = len(batch.targets)
    return [(contraction.total / n).cpu() for contraction in work], loss / n


def output_hessian_root(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Square root of diag(p) - p p^T, p = softmax(logits): unit columns and their norms.

    diag(p) - p p^T = sum_r norms_r^2 columns_r columns_r^T is the closed-form Cholesky factor
    (Tanabe and Sagae 1992): with tails q_j = sum_{i > j} p_i,

        L_jj = sqrt(p_j q_j / q_{j-1}),  L_ij = -p_i sqrt(p_j / (q_j q_{j-1})) for i > j.

    Classes are taken in increasing order of p, so that every tail is at least 1/C and nothing
    cancels, however confident the network is; unit columns keep tiny p out of float32's range.
    Logits are (B, C), columns (B, C, C - 1) and norms (B, C - 1), float64.
    """
    p, order = torch.softmax(logits.double(), dim=1).sort(dim=1)
    tails = p.flip(1).cumsum(1).flip(1)  # q_{j-1}, from the largest probability down
    q, q_before, p_column = tails[:, 1:], tails[:, :-1], p[:, :-1]
    below = -p[:, :, None] * (p_column / (q * q_before)).sqrt()[:, None, :]
    root = below.tril(-1)
    root.diagonal(dim1=1, dim2=2).copy_((p_column * q / q_before).sqrt())
    columns = torch.empty_like(root).scatter_(1, order[:, :, None].expand_as(root), root)
    norms = columns.norm(dim=1)
    return columns / norms.clamp_min(torch.finfo(torch.float64).tiny)[:, None, :], norms


class _Contraction:
    """Accumulates sum_i sum_r t_irk^2 of one layer."""

    def __init__(self, layer: Layer, directions: SingularDirections) -> None:
        weight, module = layer.weight, layer.module
        self.module = module
        self.convolves = isinstance(module, nn.Conv1d | nn.Conv2d)
        self.groups: int = module.groups if self.convolves else 1  # type: ignore[assignment]
        self.n_directions = len(directions.values)
        # One copy of v_k per group: u_k v_k^T acts on each group's own input channels.
        kernels = directions.right.T.to(weight).reshape(-1, *weight.shape[1:])
        self.parameters = {"weight": kernels.repeat(self.groups, *[1] * (weight.dim() - 1))}
        if module.bias is not None:
            self.parameters["bias"] = weight.new_zeros(len(self.parameters["weight"]))
        # (groups, out / groups, K)
        self.left = directions.left.to(weight).reshape(self.groups, -1, self.n_directions)
        self.total = torch.zeros(self.n_directions, dtype=torch.float64, device=weight.device)

    def start_chunk(self, call: Call) -> None:
        """Project the layer's input: v_k . a at every position, (B, groups, S, K)."""
        with torch.no_grad():
            projected = functional_call(self.module, self.parameters, (call.input,))
        self.projected = self._positions(projected)

    def add(self, delta: Tensor, norms: Tensor) -> None:
        """Add norms_i^2 t_ik^2 for one column's gradients ``delta`` in the layer's output."""
        by_position = self._positions(delta)
        if by_position.shape[2] == 1:
            t = (by_position @ self.left * self.projected).sum(dim=(1, 2))
        else:
            # Positions are summed first: nothing of size S x K is formed for each column.
            mixed = by_position.transpose(2, 3) @ self.projected
            t = (mixed * self.left).sum(dim=(1, 2))
        self.total += ((t.double() * norms[:, None]) ** 2).sum(dim=0)

    def _positions(self, output: Tensor) -> Tensor:
        """(B, groups, positions, channels per group) of a layer's output or its gradient."""
        if self.convolves:
            samples, channels = output.shape[:2]
            split = (samples, self.groups, channels // self.groups, -1)
            return output.reshape(split).transpose(2, 3)
        return output.flatten(1, -2).unsqueeze(1) if output.dim() > 2 else output[:, None, None]
