"""A forward pass written down operation by operation."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten


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
class Tape:
    """One recorded forward pass.

    ``largest`` is the number of elements of its largest tensor that depends on the inputs and on a
    weight. ``frozen`` holds, by ``id``, the values of tensors that were changed in place after an
    operation had read them.
    """

    operations: list[Operation]
    logits: Tensor
    largest: int
    frozen: dict[int, Tensor]


def record(model: Callable[[Tensor], Tensor], inputs: Tensor, weights: Sequence[Tensor]) -> Tape:
    """Run the model and write down what depends on ``weights``, nothing if the logits do not.

    A change in place is written down as an operation that returns a new tensor.
    """
    with torch.no_grad(), _Recorder(weights) as recorder:
        result = model(inputs)
    logits = recorder.current(result)
    if any(tensor._version != version for tensor, version in recorder.constants):
        raise TapeError("the forward pass changes a constant in place after its use")
    largest = _largest(recorder.operations, weights)
    return Tape(recorder.operations, logits, largest, recorder.frozen)


def _largest(operations: Sequence[Operation], weights: Sequence[Tensor]) -> int:
    """Elements of the largest result that is no function of the weights alone."""
    fixed = {id(weight) for weight in weights}
    largest = 1
    for operation in operations:
        outputs = [out for out in operation.outputs if isinstance(out, Tensor)]
        if all(id(leaf) in fixed for leaf in operation.leaves if isinstance(leaf, Tensor)):
            fixed |= {id(out) for out in outputs}
        else:
            largest = max([largest, *(out.numel() for out in outputs)])
    return largest


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Appends every operation that reads an active tensor; its floating results are active too.

    Memory that is changed in place has a value of its own for every state: ``_bases`` holds the
    latest, as a flat tensor, and whatever looks into that memory is read from it.
    """

    def __init__(self, weights: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.active = {id(weight) for weight in weights}
        self.constants: list[tuple[Tensor, int]] = []
        self.frozen: dict[int, Tensor] = {}
        self._origins: dict[int, Tensor] = {}
        self._bases: dict[int, tuple[Tensor, torch.UntypedStorage]] = {}

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        given, spec = tree_flatten((args, kwargs))
        leaves = [self.current(leaf) for leaf in given]
        if not any(id(leaf) in self.active for leaf in leaves):
            return func(*args, **kwargs)
        written = _written(func, args, kwargs)
        if written:
            return self._change(func, args, kwargs, given, leaves, spec, written)
        result = func(*args, **kwargs)
        self._append(func, leaves, spec, tree_flatten(result)[0])
        return result

    def current(self, leaf: Any) -> Any:  # noqa: ANN401
        """The recorded value that an argument stands for."""
        if not isinstance(leaf, Tensor) or _memory(leaf) not in self._bases:
            return leaf
        base, _ = self._bases[_memory(leaf)]
        geometry = (leaf.size(), leaf.stride(), leaf.storage_offset())
        value = base.as_strided(*geometry)
        self._note(lambda x: x.as_strided(*geometry), [base], value)
        return value

    def _note(self, function: Callable[..., Any], leaves: list[Any], value: Tensor) -> None:
        """Append an operation of the recorder's own, if it depends on a weight."""
        if any(id(leaf) in self.active for leaf in leaves):
            self._append(function, leaves, tree_flatten((tuple(leaves), {}))[1], [value])

    def _append(
        self, function: Callable[..., Any], leaves: list[Any], spec: TreeSpec, outputs: list[Any]
    ) -> None:
        active = [i for i, leaf in enumerate(leaves) if id(leaf) in self.active]
        self.operations.append(Operation(function, leaves, spec, active, outputs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self.constants += [(x, x._version) for x in tensors if id(x) not in self.active]
        for out in outputs:
            if isinstance(out, Tensor) and out.is_floating_point():
                self.active.add(id(out))
                if all(_memory(out) != _memory(tensor) for tensor in tensors):
                    self._origins[_memory(out)] = out

    def _change(
        self,
        func: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given: list[Any],
        leaves: list[Any],
        spec: TreeSpec,
        written: list[int],
    ) -> Any:  # noqa: ANN401
        """Run an operation that changes its argument, and write it down as one that does not."""
        places = [i for i, leaf in enumerate(given) if id(leaf) == written[0]]
        if len(written) != 1 or len(places) != 1:
            raise TapeError(f"{func} changes several tensors, or one that it also reads")
        (place,) = places
        target = given[place]
        base = self._base(target)
        if leaves[place] is target:
            before = target.detach().clone()
            self._note(torch.clone, [target], before)
            leaves[place] = before
        for leaf in (op.leaves[i] for op in self.operations for i in op.active):
            if _memory(leaf) == _memory(target) and id(leaf) not in self.frozen:
                self.frozen[id(leaf)] = leaf.detach().clone()
        before_geometry = (target.size(), target.stride(), target.storage_offset())
        result = func(*args, **kwargs)
        geometry = (target.size(), target.stride(), target.storage_offset())
        if geometry != before_geometry:
            raise TapeError(f"{func} changes the shape of a tensor in place")

        def changed(*args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
            flat, own_spec = tree_flatten((args, kwargs))
            flat[place] = flat[place].clone()
            args, kwargs = tree_unflatten(flat, own_spec)
            func(*args, **kwargs)
            value: Tensor = flat[place]
            return value

        after = target.detach().clone()
        self._append(changed, leaves, spec, [after])

        # torch.as_strided_scatter has a wrong derivative in its first argument (torch 2.13).
        def scattered(base: Tensor, value: Tensor) -> Tensor:
            new = base.clone()
            new.as_strided(*geometry).copy_(value)
            return new

        whole = _flat(target)
        self._note(scattered, [base, after], whole)
        self._bases[_memory(target)] = whole, target.untyped_storage()
        return result

    def _base(self, target: Tensor) -> Tensor:
        """The memory of ``target`` before a change, as a recorded flat tensor."""
        key = _memory(target)
        if key in self._bases:
            return self._bases[key][0]
        whole = _flat(target)
        if key in self._origins:
            size = len(whole)
            self._note(lambda x: x.as_strided((size,), (1,), 0), [self._origins[key]], whole)
        return whole


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:  # noqa: ANN401
    """Ids of the tensors that an operation changes."""
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False))
    given |= kwargs
    return [
        id(leaf)
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
        for leaf in tree_flatten(given.get(argument.name))[0]
        if isinstance(leaf, Tensor)
    ]


def _memory(tensor: Tensor) -> int:
    address: int = tensor.untyped_storage()._cdata
    return address


def _flat(tensor: Tensor) -> Tensor:
    """A copy of all memory that ``tensor`` is a view of."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((size,), (1,), 0).clone()
