"""Where a function is known to be piecewise linear in a weight, read off its autograd graph."""

import re
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import Node

# Names of autograd nodes without "Backward" and the overload's number. A node that is not listed
# counts as curved.

# Jointly (piecewise) linear in all operands.
_LINEAR = frozenset(
    {
        "Abs",
        "AdaptiveAvgPool2D",
        "AdaptiveMaxPool2D",
        "Add",
        "Alias",
        "Amax",
        "Amin",
        "AsStrided",
        "AvgPool2D",
        "Cat",
        "Clamp",
        "ClampMax",
        "ClampMin",
        "Clone",
        "ConstantPadNd",
        "Cumsum",
        "Diagonal",
        "Expand",
        "Flip",
        "Gather",
        "Hardsigmoid",
        "Hardtanh",
        "Index",
        "IndexSelect",
        "LeakyRelu",
        "MaskedFill",
        "Max",
        "MaxPool2DWithIndices",
        "Maximum",
        "Mean",
        "Min",
        "Minimum",
        "Narrow",
        "Neg",
        "Permute",
        "PixelShuffle",
        "PixelUnshuffle",
        "ReflectionPad1D",
        "ReflectionPad2D",
        "Relu",
        "Repeat",
        "ReplicationPad1D",
        "ReplicationPad2D",
        "ReshapeAlias",
        "Roll",
        "Rsub",
        "Select",
        "Slice",
        "Split",
        "SplitWithSizes",
        "Squeeze",
        "Stack",
        "Sub",
        "Sum",
        "T",
        "Threshold",
        "ToCopy",
        "Transpose",
        "Unbind",
        "UnsafeSplit",
        "UnsafeView",
        "Unsqueeze",
        "UpsampleBilinear2D",
        "UpsampleNearest2D",
        "View",
        "Where",
    }
)
# Linear in each operand alone: at most one of them may depend on the weight.
_BILINEAR = frozenset(
    {"Addmm", "Baddbmm", "Bmm", "Convolution", "Dot", "Linear", "Mm", "Mul", "Mv", "PreluKernel"}
)
_HALF = (torch.float16, torch.bfloat16)
# Linear in the first operand alone; NativeBatchNorm with the running statistics only.
_LINEAR_IN_FIRST = frozenset({"Div", "NativeBatchNorm"})


def curved_operations(
    root: Node, weights: Sequence[Tensor]
) -> tuple[list[str | None], list[int], str | None]:
    """Operations that may be curved in a weight, between it and the output.

    An operation is harmless if it is (piecewise) linear in its operands jointly, or in the only
    operand that depends on the weight. From the output's ``grad_fn``, per weight: the name of such
    an operation (None: the output is piecewise linear in the weight), and how many operations read
    the weight. Last the name of an operation whose result depends on a weight and is of half
    precision, None if there is none.
    """
    reduced = None
    index = {id(weight): i for i, weight in enumerate(weights)}
    uses = [0] * len(weights)
    curved: list[str | None] = [None] * len(weights)
    reach: dict[Node | None, int] = {None: 0}  # bit i: depends on weight i
    for node in _operands_first(root):
        operands = [child for child, _ in node.next_functions]
        masks = [reach[child] for child in operands]
        for child in operands:
            weight = index.get(id(getattr(child, "variable", None)))
            if weight is not None:
                uses[weight] += 1
        leaf = index.get(id(getattr(node, "variable", None)))
        reach[node] = 0 if leaf is None else 1 << leaf
        for mask in masks:
            reach[node] |= mask
        if reach[node] and any(meta.dtype in _HALF for meta in node._input_metadata):
            reduced = node.name()
        bad = _curved_in(node, masks)
        for i in range(len(weights)):
            if bad >> i & 1:
                curved[i] = node.name()
    return curved, uses, reduced


def _curved_in(node: Node, masks: Sequence[int]) -> int:
    """Bits of the weights in which ``node`` may be curved."""
    any_operand, twice = 0, 0
    for mask in masks:
        twice |= any_operand & mask
        any_operand |= mask
    # PyTorch's own nodes are numbered; a user's Function may have any name, without a number.
    found = re.fullmatch(r"(\w+)Backward\d+", node.name())
    name = found[1] if found else ""
    if name == "Abs" and node._saved_self.is_complex():  # type: ignore[attr-defined]
        return any_operand  # the modulus is a square root
    if name in _LINEAR:
        return 0
    if name in _BILINEAR:
        return twice
    if name in _LINEAR_IN_FIRST and not getattr(node, "_saved_training", False):
        others = 0
        for mask in masks[1:]:
            others |= mask
        return others
    return any_operand


def _operands_first(root: Node) -> Iterator[Node]:
    """Every node once, after all nodes it reads from."""
    done: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child, _ in node.next_functions if child is not None)
