"""A forward pass written down operation by operation, to be differentiated operation by operation.

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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from spectral_laws.curvature.operation_rules import Push, short_rule

_log = logging.getLogger(__name__)


class TapeError(ValueError):
    """A forward pass that cannot be taken apart; the message says why."""


@dataclass
class Operation:
    """One operation of a forward pass that depends on a weight.

    ``leaves`` are its flattened arguments, ``active`` the places of those that depend on a weight.
    Tensors are known by ``id``, which is safe because the tape holds them.
    """

    function: Callable[..., Any]
    leaves: list[Any]
    spec: TreeSpec
    active: list[int]
    outputs: list[Any]

    @property
    def name(self) -> str:
        """PyTorch's name of the operation, ``aten.gelu.default`` say."""
        return str(self.function)


@dataclass
class LinearisedOperation:
    """An operation with its derivatives at the recorded point: ids of its operands, and a push."""

    operands: list[int]
    results: list[int]
    push: Push


@dataclass
class Tape:
    """One recorded forward pass."""

    operations: list[Operation]
    logits: Tensor

    @property
    def largest(self) -> int:
        """Number of elements of the largest tensor that depends on a weight."""
        sizes = (
            out.numel()
            for operation in self.operations
            for out in operation.outputs
            if isinstance(out, Tensor)
        )
        return max(sizes, default=1)


@dataclass
class LinearisedTape:
    """A tape with the gradients lambda_j: tangents can be pushed through it.

    ``gradients`` holds the loss's gradient by ``id`` of every tensor without an operation of its
    own, the weights that is.
    """

    operations: list[LinearisedOperation]
    gradients: dict[int, Tensor]
    logits: Tensor

    @torch.no_grad()
    def push(self, weight: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Tangents of the logits, and the curvature of everything before the loss.

        Args:
            weight: one of the recorded weights.
            directions: (K, *weight.shape).

        Returns:
            (K, *logits.shape) first derivatives of the logits along each direction, and (K,)
            float64 sums over operations of <lambda_j, D^2 f_j[dx_j, dx_j]>.
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
        return tangents[id(self.logits)], curvature

    def _finished(self) -> list[list[int]]:
        """Per operation the tensors that no later one reads; their tangents are dropped."""
        last = {
            operand: n
            for n, operation in enumerate(self.operations)
            for operand in operation.operands
        }
        finished: list[list[int]] = [[] for _ in self.operations]
        for operand, n in last.items():
            if operand != id(self.logits):
                finished[n].append(operand)
        return finished


def record(model: nn.Module, inputs: Tensor, weights: Sequence[Tensor]) -> Tape:
    """Run the model and write down what depends on ``weights``.

    Changes in place are replaced by operations that return a new tensor.

    Raises:
        TapeError: if the model changes a tensor of its own, or its output is not recorded.
    """
    with torch.no_grad():
        with _Recorder(weights) as recorder:
            logits = model(inputs)
        if recorder.changed_in_place():
            try:
                with _Recorder(weights) as recorder:
                    logits = torch.func.functionalize(model, remove="mutations")(inputs)
            except RuntimeError as error:
                if not re.search("functional tensor|functorch", str(error)):
                    raise
                raise TapeError("the forward pass changes tensors in place") from error
    if recorder.changed_in_place() or id(logits) not in recorder.active:
        raise TapeError("the forward pass cannot be written down without changes in place")
    return Tape(recorder.operations, logits)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Appends every operation that reads an active tensor; its floating results are active too."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.active = {id(weight) for weight in weights}
        self._versions: list[tuple[Tensor, int]] = []

    def changed_in_place(self) -> bool:
        """Whether an argument of an operation is not any more what it was."""
        return any(tensor._version != version for tensor, version in self._versions)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        leaves, spec = tree_flatten((args, kwargs or {}))
        active = [i for i, leaf in enumerate(leaves) if id(leaf) in self.active]
        if active:
            self._versions += [(x, x._version) for x in leaves if isinstance(x, Tensor)]
        result = func(*args, **(kwargs or {}))
        if active:
            outputs = tree_flatten(result)[0]
            self.operations.append(
                Operation(_DIFFERENTIABLE.get(func, func), leaves, spec, active, outputs)
            )
            self.active |= {
                id(out) for out in outputs if isinstance(out, Tensor) and out.is_floating_point()
            }
        return result


def _copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    del non_blocking
    return source.to(target.dtype).expand_as(target).clone()


_DIFFERENTIABLE = {torch.ops.aten.copy.default: _copy}
"""Operations that only replace a change in place, and have no derivative of their own."""


def linearise(tape: Tape, cotangent: Tensor, *, second_order: bool = True) -> LinearisedTape:
    """Gradients of every recorded tensor, from that of the logits, operation by operation.

    Args:
        tape: a recorded forward pass.
        cotangent: gradient of the loss in the logits.
        second_order: whether pushes return curvatures; without, they return None in their place.
    """
    gradients = {id(tape.logits): cotangent}
    linearised = []
    for operation in reversed(tape.operations):
        cotangents = [gradients.pop(id(out), None) for out in operation.outputs]
        if all(value is None for value in cotangents):
            continue
        found = _linearise(operation, cotangents, second_order=second_order)
        if found is None:
            continue
        local, pulled = found
        for operand, gradient in zip(local.operands, pulled, strict=True):
            previous = gradients.get(operand)
            gradients[operand] = gradient if previous is None else previous + gradient
        linearised.append(local)
    return LinearisedTape(linearised[::-1], gradients, tape.logits)


def _linearise(
    operation: Operation, cotangents: Sequence[Tensor | None], *, second_order: bool
) -> tuple[LinearisedOperation, list[Tensor]] | None:
    """One operation's push and the gradients of its operands; None if no gradient passes it."""
    operands: dict[int, Tensor] = {}
    arguments = list(operation.leaves)
    with torch.enable_grad():
        for place in operation.active:
            tensor = arguments[place]
            operands.setdefault(id(tensor), tensor.detach().requires_grad_())
            arguments[place] = operands[id(tensor)]
        args, kwargs = tree_unflatten(arguments, operation.spec)
        outputs = tree_flatten(operation.function(*args, **kwargs))[0]
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
    used = [
        (i, leaf, p) for (i, leaf), p in zip(operands.items(), pulled, strict=True) if p is not None
    ]
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


_looped: Counter[str] = Counter()


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
            if not re.search("vmap|batching rule", str(error), re.IGNORECASE):
                raise
            _looped[name] += 1
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
