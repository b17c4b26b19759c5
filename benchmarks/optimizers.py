"""Time of a Spectral Newton step against a Muon step, per matrix, in one run.

    python benchmarks/optimizers.py

One thread. Both optimizers have one matrix; their steps alternate, and the median of the ratios
is printed. `torch.optim.Muon` makes five Newton-Schulz iterations in bfloat16: where the processor
has matrix units for bfloat16 (AMX), these run several times faster than float32 products do, of
which Spectral Newton's exact update is made. So the same five iterations in float32 stand beside,
and the operations of each way. Agreement is with the singular value decomposition in float64.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from spectral_laws.optimizers.spectral_newton import SpectralNewton
from spectral_laws.optimizers.spectral_update import spectral_update

SHAPES = ((512, 4608), (256, 2304), (64, 576), (384, 1536))
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
BARS = {2.0: 0.35, 1.5: 0.8}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="steps of each optimizer")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, 1 thread, {repeats} alternating steps, median")
    print(f"processor: {', '.join(processor()) or 'no bfloat16 units'}\n")
    names = ["Muon", "Newton-Schulz in float32", "alpha = 2", "alpha = 1.5"]
    for shape in SHAPES:
        gradient = power_law(shape)
        ways = [
            step_of(torch.optim.Muon, gradient),
            lambda gradient=gradient: newton_schulz(gradient),
            step_of(SpectralNewton, gradient, alpha=2.0),
            step_of(SpectralNewton, gradient, alpha=1.5),
        ]
        seconds = alternate(ways, repeats)
        medians = [1e3 * statistics.median(times) for times in seconds]
        print(f"{shape[0]} x {shape[1]}: {gigaflops(shape):.1f} GFLOP of Newton-Schulz")
        for name, median in zip(names, medians, strict=True):
            print(f"  {name:26s} {median:8.2f} ms")
        for index, alpha in ((2, 2.0), (3, 1.5)):
            against = [ratio(seconds[index], seconds[other]) for other in (0, 1)]
            print(
                f"  alpha = {alpha:g}: {against[0]:.2f} of Muon, {against[1]:.2f} of the same in "
                f"float32; bar {BARS[alpha]:g}"
            )
        print(f"  operations, alpha = 2: {operations(shape):.2f} of Newton-Schulz")
        for alpha in (1.0, 1.5, 2.0):
            errors = [disagreement(gradient.to(d), alpha) for d in (torch.float32, torch.float64)]
            print(f"  distance to the definition, alpha = {alpha:g}: float32 {errors[0]:.1e}, "
                  f"float64 {errors[1]:.1e}")  # fmt: skip
        print()


def power_law(shape: tuple[int, int]) -> Tensor:
    """Random matrix with singular values k^-1, as gradients have them."""
    left, _ = torch.linalg.qr(torch.randn(shape[0], shape[0]))
    right, _ = torch.linalg.qr(torch.randn(shape[1], shape[0]))
    return 1e-3 * (left / torch.arange(1.0, shape[0] + 1)) @ right.T


def step_of(
    optimizer_type: Callable[..., torch.optim.Optimizer], gradient: Tensor, **options: float
) -> Callable[[], object]:
    """A whole optimizer step, momentum and all, of one parameter with this gradient."""
    parameter = nn.Parameter(torch.zeros_like(gradient))
    parameter.grad = gradient.clone()
    optimizer = optimizer_type([parameter], lr=1e-3, weight_decay=0.1, **options)
    return optimizer.step


def newton_schulz(gradient: Tensor) -> Tensor:
    """Muon's five iterations, in the gradient's own precision."""
    a, b, c = COEFFICIENTS
    x = gradient / gradient.norm()
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def alternate(ways: list[Callable[[], object]], repeats: int) -> list[list[float]]:
    """Seconds of CPU time per way and repeat, after one call of each that is not counted."""
    for way in ways:
        way()
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for times, way in zip(seconds, ways, strict=True):
            started = time.process_time()
            way()
            times.append(time.process_time() - started)
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Median over the repeats."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def gigaflops(shape: tuple[int, int]) -> float:
    """Operations of five Newton-Schulz iterations."""
    m, n = shape
    return 5 * (4 * m * m * n + 2 * m**3) / 1e9


def operations(shape: tuple[int, int]) -> float:
    """Gram matrix, Cholesky factor, inverse and product, as a share of Newton-Schulz."""
    m, n = shape
    return (4 * m * m * n + m**3) / 1e9 / gigaflops(shape)


def disagreement(gradient: Tensor, alpha: float) -> float:
    """Relative Frobenius distance to U diag(T(sigma)) V^T, damping 0.1."""
    u, sigma, vt = torch.linalg.svd(gradient.double(), full_matrices=False)
    sigma = sigma / sigma[0]
    expected = (u * (sigma / (sigma**alpha + 0.1))) @ vt
    update = spectral_update(gradient, alpha=alpha, damping=0.1).double()
    return float((update - expected).norm() / expected.norm())


def processor() -> list[str]:
    """Names of the bfloat16 instructions that this processor has."""
    if not os.path.exists("/proc/cpuinfo"):
        return ["unknown"]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return [flag for flag in ("avx512_bf16", "amx_bf16") if flag in flags]


if __name__ == "__main__":
    main()
