"""The pass over a batch that all rungs of the curvature ladder are summed in."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from spectral_laws.artifacts import check_finite
from spectral_laws.curvature.derivatives.gauss_newton import output_hessian_root
from spectral_laws.curvature.derivatives.problem import Batch, Problem
from spectral_laws.curvature.introspection.layers import (
    WEIGHTED,
    Call,
    Layer,
    differentiable_attention,
    differentiable_weights,
    recorded_calls,
)
from spectral_laws.curvature.kronecker.factors import (
    LARGEST_FACTOR,
    FactoredModule,
    output_positions,
    patch_blocks,
)


class MomentSums:
    """Sums over samples and positions of squared projections of one layer's output gradients.

    Attributes:
        coherent: (K,) sum_i (sum_t u_k.delta_it v_k.a_it)^2.
        positions: (K,) sum_it (u_k.delta_it v_k.a_it)^2.
        projected: (K,) sum_it (u_k.delta_it)^2.
        factor: (n_rows, n_rows) sum_it delta_it delta_it^T; None if not wanted or too large.
    """

    def __init__(self, left: Tensor, *, with_factor: bool) -> None:
        self._left = left
        n_rows, n_directions = left.flatten(0, 1).shape
        self.coherent, self.positions, self.projected = left.new_zeros(3, n_directions)
        formed = with_factor and n_rows <= LARGEST_FACTOR
        self.factor = left.new_zeros(n_rows, n_rows) if formed else None

    def add(self, delta: Tensor, inputs: Tensor) -> None:
        """Add gradients (B, positions, groups, rows); ``inputs`` are v.a there, (..., K)."""
        by_group = torch.einsum("bsgr,grk->bsgk", delta, self._left)
        products = _over_groups(by_group * inputs)
        self.coherent += products.sum(dim=1).square().sum(dim=0)
        self.positions += products.square().sum(dim=(0, 1))
        self.projected += _over_groups(by_group).square().sum(dim=(0, 1))
        if self.factor is not None:
            rows = delta.flatten(2).flatten(0, 1)
            self.factor += rows.T @ rows


def _over_groups(values: Tensor) -> Tensor:
    """Sum over axis 2, without a pass over the numbers where there is one group."""
    return values.squeeze(2) if values.shape[2] == 1 else values.sum(dim=2)


class LayerSums:
    """What the rungs of one layer are made of, in float64 on the model's device.

    Attributes:
        given: moments of the gradients of the given labels' loss.
        expected: the same in exact expectation over labels drawn from the model; None for
            language models.
        factor: (n_columns, n_columns) sum of a a^T over places (samples, positions and groups), or
            None if it is too large.
        projected: (K,) sum of (v_k.a)^2 over places.
        n_places: number of places.
    """

    def __init__(
        self,
        module: FactoredModule,
        left: Tensor,
        right: Tensor,
        *,
        expected: bool,
        expected_factor: bool,
    ) -> None:
        """Begin with zeros for columns ``left`` u_k (n_rows, K) and ``right`` v_k (n_columns, K).

        ``expected_factor`` says whether ``expected`` has a factor: its products cost more than all
        else where there are many classes.
        """
        self.module = module
        groups = 1 if isinstance(module, nn.Linear) else module.groups
        by_group = left.reshape(groups, len(left) // groups, left.shape[1])
        self.given = MomentSums(by_group, with_factor=True)
        self.expected = MomentSums(by_group, with_factor=expected_factor) if expected else None
        self._right = right
        n_columns, n_directions = right.shape
        self.factor = None if n_columns > LARGEST_FACTOR else right.new_zeros(n_columns, n_columns)
        self.projected = right.new_zeros(n_directions)
        self.n_places = 0

    def start_chunk(self, call: Call) -> None:
        """Take in the layer's inputs, and keep their projections for the chunk's gradients."""
        blocks = []
        for patches in patch_blocks(self.module, call.input, call.output_shape):
            rows = patches.flatten(0, 2)
            if self.factor is not None:
                self.factor += rows.T @ rows
            self.n_places += len(rows)
            blocks.append(patches @ self._right)
        self._inputs = torch.cat(blocks)
        self.projected += self._inputs.square().sum(dim=(0, 1, 2))

    def add_given(self, delta: Tensor) -> None:
        """Add the chunk's gradients of the given labels' loss in the layer's output."""
        self.given.add(output_positions(self.module, delta).double(), self._inputs)

    def add_expected(self, delta: Tensor, norms: Tensor) -> None:
        """Add gradients of one column of the logits' Hessian root, times its (B,) ``norms``."""
        if self.expected is None:
            raise RuntimeError("these sums were begun without an expectation over labels")
        scaled = output_positions(self.module, delta).double() * norms[:, None, None, None]
        self.expected.add(scaled, self._inputs)


Directions = tuple[Tensor, Tensor]
"""Columns u_k (n_rows, K) and v_k (n_columns, K), float64, of one layer."""


def sum_layers(
    problem: Problem,
    directions: Sequence[Directions],
    *,
    expected_factors: bool = False,
    label: str | None = None,
) -> tuple[dict[str, LayerSums], dict[str, str], float]:
    """Sums over the batch for every layer whose Jacobian is a sum over positions.

    Then the reason of every other layer, and the mean loss.
    """
    batch, layers = problem.batch, problem.layers
    sums: dict[str, LayerSums] = {}
    structures = problem.structure.layers
    reasons = {name: found.unsupported for name, found in structures.items() if found.unsupported}
    for layer, (left, right) in zip(layers, directions, strict=True):
        if layer.name in reasons:
            continue
        if isinstance(layer.module, WEIGHTED):
            sums[layer.name] = LayerSums(
                layer.module,
                left,
                right,
                expected=batch.targets.dim() == 1,
                expected_factor=expected_factors,
            )
        else:
            reasons[layer.name] = f"{type(layer.module).__name__} keeps it as a parameter"
    summed = [layer for layer in layers if layer.name in sums]
    with differentiable_attention():  # of the curvatures, to the last digit
        loss = _accumulate(batch, summed, [*sums.values()], label=label)
    check_finite("loss on the measurement batch", loss)
    return sums, reasons, loss


def _accumulate(
    batch: Batch, layers: Sequence[Layer], sums: Sequence[LayerSums], *, label: str | None
) -> float:
    """Add a batch to ``sums``; its mean loss.

    The expectation over labels needs no sampling: sum_c p_c (e_c - p)(e_c - p)^T is the logits'
    Hessian diag(p) - p p^T, and any root of it gives the same second moments of delta in C - 1
    backward passes. Language models have T times as many for every sequence; there it is left out.
    """
    loss = 0.0
    with differentiable_weights(batch.model, layers):
        for x, y in batch.chunks(label):
            with recorded_calls(layers) as recording:
                logits = batch.logits(x)
            chunk_loss = batch.summed_loss(logits, y)
            loss += chunk_loss.item()
            called, edges = [], []
            for layer_sums, call, edge in recording.reached(layers, sums):
                layer_sums.start_chunk(call)
                called.append(layer_sums)
                edges.append(edge)
            if not edges:
                continue
            deltas = torch.autograd.grad(chunk_loss, edges, retain_graph=True)
            for layer_sums, delta in zip(called, deltas, strict=True):
                layer_sums.add_given(delta)
            if batch.targets.dim() == 1:
                _add_expected(logits, edges, called)
    return loss / batch.targets.numel()


def _add_expected(logits: Tensor, edges: Sequence[GradientEdge], sums: Sequence[LayerSums]) -> None:
    columns, norms = output_hessian_root(logits.detach())
    for r in range(columns.shape[2]):
        cotangent = columns[:, :, r].to(logits.dtype)
        deltas = torch.autograd.grad(logits, edges, cotangent, retain_graph=True)
        for layer_sums, delta in zip(sums, deltas, strict=True):
            layer_sums.add_expected(delta, norms[:, r])
