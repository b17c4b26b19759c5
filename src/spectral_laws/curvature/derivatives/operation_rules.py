"""Tangents and curvatures of the operations that dominate, in fewer passes over memory."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Push = Callable[[Sequence[Tensor | None]], tuple[list[Tensor | None], Tensor | None]]
"""Maps (K, ...) tangents of the operands (None where zero) to those of the results, and to the (K,)
curvatures <lambda, D^2 f[dx, dx]> (None where zero)."""

_aten = torch.ops.aten
_ELEMENTWISE = frozenset(
    {
        _aten.elu.default,
        _aten.erf.default,
        _aten.exp.default,
        _aten.gelu.default,
        _aten.hardswish.default,
        _aten.hardtanh.default,
        _aten.leaky_relu.default,
        _aten.mish.default,
        _aten.pow.Tensor_Scalar,
        _aten.relu.default,
        _aten.rsqrt.default,
        _aten.sigmoid.default,
        _aten.silu.default,
        _aten.softplus.default,
        _aten.sqrt.default,
        _aten.tanh.default,
    }
)
_SOFTMAX = frozenset({_aten._safe_softmax.default, _aten._softmax.default})


def short_rule(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    leaves: Sequence[Tensor],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor],
    gradients: Sequence[Tensor],
    *,
    second_order: bool,
) -> Push | None:
    """The short way through one operation, or None if there is none.

    ``leaves`` are its arguments that depend on the weight, ``adjoints`` the loss's gradients lambda
    in ``outputs`` (leaves of the autograd graph), ``gradients`` J^T lambda those in ``leaves``.
    """
    if function in _ELEMENTWISE and len(leaves) == 1:
        return _elementwise(leaves[0], adjoints[0], gradients[0], second_order=second_order)
    if function in _SOFTMAX:
        return _softmax(outputs[0], gradients[0], dim=args[1], second_order=second_order)
    if function is _aten.native_layer_norm.default and leaves[0] is args[0] and len(leaves) == 1:
        return _layer_norm(args, adjoints[0], second_order=second_order)
    if function is _aten.bmm.default and len(leaves) == 2:
        return _matrix_product(args[0], args[1], adjoints[0], second_order=second_order)
    return None


def _elementwise(x: Tensor, adjoint: Tensor, gradient: Tensor, *, second_order: bool) -> Push:
    """Tangent dy = f'(x) dx and curvature <lambda, f''(x) dx^2>."""
    slope, bend = torch.autograd.grad(
        gradient, [adjoint, x], torch.ones_like(gradient), allow_unused=True
    )
    curves = second_order and bend is not None and bool(bend.any())
    buffer = torch.empty_like(slope)

    def one(dx: Tensor, dy: Tensor) -> Tensor | None:
        torch.mul(dx, slope, out=dy)
        return _dot(torch.mul(dx, bend, out=buffer), dx) if curves else None

    return _by_direction(one, slope.shape)


def _softmax(output: Tensor, gradient: Tensor, *, dim: int, second_order: bool) -> Push:
    """With c = dx - <y, dx>: dy = y c, and the curvature is <J^T lambda, c^2>."""
    y, pulled = output.detach(), gradient.detach()
    buffer = torch.empty_like(y)

    def one(dx: Tensor, dy: Tensor) -> Tensor | None:
        mean = torch.mul(dx, y, out=buffer).sum(dim, keepdim=True)
        centred = torch.sub(dx, mean, out=buffer)
        torch.mul(centred, y, out=dy)
        return _dot(centred.square_(), pulled) if second_order else None

    return _by_direction(one, y.shape)


def _layer_norm(args: tuple[Any, ...], adjoint: Tensor, *, second_order: bool) -> Push:
    r"""Layer norm y = w z + b, z = (x - mean x) r, r = (var x + eps)^(-1/2), over n features.

    With P(v) = v - mean v - z mean(z v), g = w lambda and m the mean over features:
    dz = r P(dx), and the curvature is -n r^2 (2 m(dx P(g)) m(z dx) + m(z g) m(dx P(dx))).
    """
    x, shape, scale, _, eps = args
    rows = (*x.shape[: x.dim() - len(shape)], -1)
    original, x, adjoint = x.shape, x.detach().reshape(rows), adjoint.detach().reshape(rows)
    n = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    r = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    z = centred * r
    gain = r if scale is None else r * scale.detach().reshape(-1)
    g = adjoint if scale is None else adjoint * scale.detach().reshape(-1)
    along = (g * z).mean(-1, keepdim=True)
    projected = g - g.mean(-1, keepdim=True) - z * along
    factor = -n * r.square()

    def one(dx: Tensor, dy: Tensor) -> Tensor | None:
        v = dx.reshape(x.shape)
        inner = (v * z).mean(-1, keepdim=True)
        change = v - v.mean(-1, keepdim=True)
        change.addcmul_(z, inner, value=-1)
        torch.mul(change, gain, out=dy.view(x.shape))
        if not second_order:
            return None
        both = 2 * inner * (v * projected).mean(-1, keepdim=True)
        both += along * change.mul_(v).mean(-1, keepdim=True)
        return _dot(both, factor)

    return _by_direction(one, original)


def _matrix_product(a: Tensor, b: Tensor, adjoint: Tensor, *, second_order: bool) -> Push:
    """Tangent dy = da b + a db; the curvature is 2 <lambda, da db>."""
    a, b, adjoint = a.detach(), b.detach(), adjoint.detach()

    def first(da: Tensor, dy: Tensor) -> None:
        torch.bmm(da, b, out=dy)

    def second(db: Tensor, dy: Tensor) -> None:
        torch.bmm(a, db, out=dy)

    def both(da: Tensor, db: Tensor, dy: Tensor) -> Tensor | None:
        torch.bmm(da, b, out=dy).baddbmm_(a, db)
        if not second_order:
            return None
        # Whichever product is the smaller array.
        if a.shape[2] < a.shape[1]:
            return 2 * _dot(torch.bmm(da.transpose(1, 2), adjoint), db)
        return 2 * _dot(torch.bmm(da, db), adjoint)

    def push(tangents: Sequence[Tensor | None]) -> tuple[list[Tensor | None], Tensor | None]:
        da, db = tangents
        one = second if da is None else first if db is None else both
        return _by_direction(one, adjoint.shape)([t for t in tangents if t is not None])

    return push


def _by_direction(one: Callable[..., Tensor | None], shape: torch.Size) -> Push:
    """A push that takes one direction at a time, whose numbers then stay in cache.

    ``one`` writes the tangent of the result into its last argument and returns the curvature.
    """

    def push(tangents: Sequence[Tensor | None]) -> tuple[list[Tensor | None], Tensor | None]:
        given = [tangent for tangent in tangents if tangent is not None]
        result = given[0].new_empty(len(given[0]), *shape)
        curved = [one(*(t[k] for t in given), result[k]) for k in range(len(result))]
        values = [value for value in curved if value is not None]
        return [result], torch.stack(values) if values else None

    return push


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.dot(a.reshape(-1), b.reshape(-1))
