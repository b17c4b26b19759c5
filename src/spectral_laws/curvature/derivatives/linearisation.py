"""A recorded forward pass, differentiated operation by operation.

With x_j the input of operation j and lambda_j the gradient of the loss in its output, the chain
rule for the second derivative along a tangent is

    d^2 L / dt^2 = sum_j <lambda_j, D^2 f_j(x_j)[dx_j, dx_j]> + (the loss's own term).

It needs the first-order tangents dx_j alone. The gradients lambda_j are the same for all layers and
directions, so each direction costs about one forward pass where double backpropagation runs
forwards and back. First and second derivatives of every operation are PyTorch's own;
``operation_rules`` has shorter ways for the few that dominate.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from spectral_laws.curvature.derivatives.operation_rules import Push, short_rule
from spectral_laws.curvature.derivatives.tape import Operation, Tape, TapeError

_log = logging.getLogger(__name__)


def _hardsigmoid(x: Tensor) -> Tensor:
    return (x + 3).clamp(0, 6) / 6


_DIFFERENTIABLE: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.hardsigmoid.default: _hardsigmoid
}
"""The same functions in terms of operations that have a second derivative in torch."""


@dataclass
class LinearisedOperation:
    """An operation with its derivatives at the recorded point: ids of its operands, and a push."""

    operands: list[int]
    results: list[int]
    push: Push


@dataclass
class LinearisedTape:
    """A tape with the gradients lambda_j: tangents can be pushed through it.

    ``gradients`` holds the loss's gradient by ``id`` of every tensor without an operation of its
    own, the weights that is.
    """

    operations: list[LinearisedOperation]
    gradients: dict[int, Tensor]
    tape: Tape

    @torch.no_grad()
    def push(self, weight: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Push (K, *weight.shape) ``directions`` of a recorded weight.

        Returned are the (K, *logits.shape) tangents of the logits and (K,) float64 sums over
        operations of <lambda_j, D^2 f_j[dx_j, dx_j]>.
        """
        tangents = {id(weight): directions}
        curvature = directions.new_zeros(len(directions), dtype=torch.float64)
        for operation, finished in zip(self.operations, self._finished(), strict=True):
            found = [tangents.get(operand) for operand in operation.operands]
            if any(tangent is not None for tangent in found):
                results, curved = operation.push(found)
                for identity, result in zip(operation.results, results, strict=True):
                    if result is not None:
                        tangents[identity] = result
                if curved is not None:
                    curvature += curved
            for identity in finished:
                tangents.pop(identity, None)
        logits = self.tape.logits
        if id(logits) not in tangents:  # these samples do not reach the weight
            return logits.new_zeros(len(directions), *logits.shape), curvature
        return tangents[id(logits)], curvature

    def _finished(self) -> list[list[int]]:
        """Per operation the tensors that no later one reads; their tangents are dropped."""
        last = {
            operand: n
            for n, operation in enumerate(self.operations)
            for operand in operation.operands
        }
        finished: list[list[int]] = [[] for _ in self.operations]
        for operand, n in last.items():
            if operand != id(self.tape.logits):
                finished[n].append(operand)
        return finished


def linearise(tape: Tape, cotangent: Tensor, *, second_order: bool = True) -> LinearisedTape:
    """Gradients of every recorded tensor from ``cotangent``, that of the logits.

    Without ``second_order`` pushes return None in place of curvatures.
    """
    gradients = {id(tape.logits): cotangent}
    linearised = []
    for operation in reversed(tape.operations):
        cotangents = [gradients.pop(id(out), None) for out in operation.outputs]
        if all(value is None for value in cotangents):
            continue
        found = _linearise(operation, cotangents, tape.frozen, second_order=second_order)
        if found is None:
            continue
        local, pulled = found
        for operand, gradient in zip(local.operands, pulled, strict=True):
            previous = gradients.get(operand)
            gradients[operand] = gradient if previous is None else previous + gradient
        linearised.append(local)
    return LinearisedTape(linearised[::-1], gradients, tape)


def _linearise(
    operation: Operation,
    cotangents: Sequence[Tensor | None],
    frozen: Mapping[int, Tensor],
    *,
    second_order: bool,
) -> tuple[LinearisedOperation, list[Tensor]] | None:
    """One operation's push and the gradients of its operands; None if no gradient passes it."""
    operands: dict[int, Tensor] = {}
    arguments = list(operation.leaves)
    with torch.enable_grad():
        for place in operation.active:
            tensor = arguments[place]
            value = frozen.get(id(tensor), tensor)
            operands.setdefault(id(tensor), value.detach().requires_grad_())
            arguments[place] = operands[id(tensor)]
        args, kwargs = tree_unflatten(arguments, operation.spec)
        function = _DIFFERENTIABLE.get(operation.function, operation.function)
        outputs = tree_flatten(function(*args, **kwargs))[0]
        kept = [
            i
            for i, (out, cotangent) in enumerate(zip(outputs, cotangents, strict=True))
            if cotangent is not None and out.requires_grad
        ]
        if not kept:
            return None
        adjoints = [cotangents[i].detach().requires_grad_() for i in kept]  # type: ignore[union-attr]
        pulled = torch.autograd.grad(
            [outputs[i] for i in kept],
            list(operands.values()),
            adjoints,
            create_graph=True,
            allow_unused=True,
        )
    # A gradient that does not depend on lambda, in which it is linear, is zero.
    used = [
        (i, leaf, gradient)
        for (i, leaf), gradient in zip(operands.items(), pulled, strict=True)
        if gradient is not None and gradient.requires_grad
    ]
    if not used:
        return None
    identities, leaves, gradients = (list(column) for column in zip(*used, strict=True))
    push = short_rule(
        operation.function,
        args,
        leaves,
        [outputs[i] for i in kept],
        adjoints,
        gradients,
        second_order=second_order,
    ) or _general_rule(operation.name, leaves, adjoints, gradients, second_order=second_order)
    results = [id(operation.outputs[i]) for i in kept]
    return LinearisedOperation(identities, results, push), [g.detach() for g in gradients]


_looped: set[str] = set()
"""Operations that vmap was found not to know."""


def _general_rule(
    name: str,
    leaves: list[Tensor],
    adjoints: list[Tensor],
    gradients: list[Tensor],
    *,
    second_order: bool,
) -> Push:
    """Push by PyTorch's second derivatives of one operation, whatever it is.

    g = J(x)^T lambda is linear in lambda, so differentiating <g, dx> in lambda gives the tangent
    J(x) dx of the output, and in x the vector c with <c, dx> = <lambda, D^2 f(x)[dx, dx]>.
    """

    def push(tangents: Sequence[Tensor | None]) -> tuple[list[Tensor | None], Tensor | None]:
        live = [i for i, tangent in enumerate(tangents) if tangent is not None]
        along = [tangent for tangent in tangents if tangent is not None]
        sources = [*adjoints, *(leaves[i] for i in live)] if second_order else adjoints
        found = _batched_grad(name, [gradients[i] for i in live], sources, along)
        curved = None
        for tangent, c in zip(along, found[len(adjoints) :], strict=False):
            if c is not None:
                part = (c * tangent).reshape(len(c), -1).sum(1)
                curved = part if curved is None else curved + part
        return found[: len(adjoints)], curved

    return push


def _batched_grad(
    name: str, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor]
) -> list[Tensor | None]:
    """Gradients for K cotangents at once; one by one where vmap does not know the operation."""
    if name not in _looped:
        try:
            return list(
                torch.autograd.grad(
                    outputs,
                    inputs,
                    cotangents,
                    retain_graph=True,
                    allow_unused=True,
                    is_grads_batched=True,
                )
            )
        except RuntimeError as error:
            if re.search("derivative for .* is not implemented", str(error)):
                raise TapeError(str(error)) from error
            if not re.search("vmap|batching rule", str(error), re.IGNORECASE):
                raise
            _looped.add(name)
            _log.warning("%s is differentiated direction by direction: %s", name, error)
    rows = [
        torch.autograd.grad(
            outputs, inputs, [c[k] for c in cotangents], retain_graph=True, allow_unused=True
        )
        for k in range(len(cotangents[0]))
    ]
    return [
        None if column[0] is None else torch.stack(column) for column in zip(*rows, strict=True)
    ]
