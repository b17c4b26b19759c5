"""Time the spectral estimator against the published subspace iteration, in one run.

Both look for the d1 leading eigenvectors of C = (1/n) sum (y - ybar) (F F^T - I) at each n of a
grid, in float32, with the same samples and threads, up to the same accuracy: an overlap
||U^T U*||_F^2 / d1 of at least 0.999 with the subspace converged in float64 (not timed).

- published: subspace iteration from a cold start with oversampling 10, in d x d form, the inputs
  drawn again on every pass; 15 iterations, or as many more as the overlap needs, up to a cap. It
  is timed twice: with its batched products over a whole block of 4096 samples (plain, scaled up
  from one pass) and over batches tuned to the cache of this kind of machine (tuned), which is not
  part of the published method but the hardest comparison.
- ours: block Krylov with a residual stop, warm starts along the grid, flattened features in
  cache-sized chunks, inputs kept within a memory budget.

Run from the repository's root: ``OMP_NUM_THREADS=1 python benchmarks/recovery.py``.
"""

import math
import resource
import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor

from spectral_laws.recovery.hermite import index_pairs
from spectral_laws.recovery.krylov import leading_eigenpairs
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.samples import GENERATION_BLOCK, Samples
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.rng import generator

OVERLAP = 0.999
PUBLISHED_ITERATIONS = 15
OVERSAMPLING = 10
TUNED_BATCH = 256  # the fastest of 128 .. 4096: k x batch x d numbers stay in cache


@dataclass(frozen=True)
class Result:
    """One method at one sample size."""

    iterations: int
    seconds: float
    overlap: float


@dataclass(frozen=True)
class Published(Result):
    """``needed`` counts the iterations up to the overlap."""

    needed: int | None
    plain_seconds: float


def main(
    dimension: Annotated[int, typer.Option(help="d.")] = 60,
    exponents: Annotated[str, typer.Option(help="First, last and number of log n / log d.")] = (
        "2.0,3.2,7"
    ),
    width_exponent: Annotated[float, typer.Option(help="d1 = d^eps.")] = 0.5,
    gamma: Annotated[float, typer.Option(help="Decay of the weights.")] = 0.4,
    seed: Annotated[int, typer.Option(help="Root of the random streams.")] = 0,
    tolerance: Annotated[float, typer.Option(help="Residual stop of ours.")] = 1e-2,
    memory_mb: Annotated[float, typer.Option(help="Inputs that ours keeps.")] = 1500.0,
    cap: Annotated[int, typer.Option(help="Most iterations of the published method.")] = 400,
    fast: Annotated[
        bool, typer.Option("--fast", help="A small size, to see that it runs.")
    ] = False,
) -> None:
    """Print iterations, seconds and overlap of both per n, the ratio of times, and the speed."""
    if fast:
        dimension, exponents = 16, "2.0,3.0,3"
    first, last, count = exponents.split(",")
    sizes = [int(dimension**e) for e in np.linspace(float(first), float(last), int(count))]
    n_directions = math.floor(dimension**width_exponent + 1e-9)
    teacher = Teacher.draw(dimension=dimension, n_directions=n_directions, gamma=gamma, seed=seed)
    print(
        f"d = {dimension}, D = {teacher.feature_dimension}, d1 = {n_directions}, gamma = {gamma}, "
        f"{torch.get_num_threads()} thread(s); plain matrix product: {matmul_gflops():.0f} GFLOP/s"
    )
    exact = converged_subspaces(teacher, sizes, seed=seed)
    before = peak_megabytes()
    ours, speed = estimator(
        teacher, sizes, exact, seed=seed, tolerance=tolerance, memory_mb=memory_mb
    )
    ours_peak = peak_megabytes()
    published = [
        subspace_iteration(teacher, n, target, seed=seed, cap=cap)
        for n, target in zip(sizes, exact, strict=True)
    ]
    report(sizes, published, ours)
    plain = matmul_gflops()
    print(
        f"products of ours: {speed:.0f} GFLOP/s; plain matrix product: {plain:.0f} GFLOP/s "
        f"({speed / plain:.0%})"
    )
    print(
        f"peak memory: {before:.0f} MB after the float64 reference, {ours_peak:.0f} MB after ours, "
        f"{peak_megabytes():.0f} MB after the published method"
    )


def report(sizes: list[int], published: list[Published], ours: list[Result]) -> None:
    """The table per n, and the totals."""
    print(f"{'':>7} | {'published':^44} | {'ours':^24} | {'ratio':^13}")
    print(
        f"{'n':>7} | {'passes':>6} {'needed':>6} {'plain s':>9} {'tuned s':>9} {'overlap':>10} | "
        f"{'passes':>6} {'seconds':>8} {'overlap':>8} | {'plain':>6} {'tuned':>6}"
    )
    for n, theirs, mine in zip(sizes, published, ours, strict=True):
        needed = "never" if theirs.needed is None else str(theirs.needed)
        print(
            f"{n:>7} | {theirs.iterations:>6} {needed:>6} {theirs.plain_seconds:>9.2f} "
            f"{theirs.seconds:>9.2f} {theirs.overlap:>10.5f} | "
            f"{mine.iterations:>6} {mine.seconds:>8.3f} {mine.overlap:>8.5f} | "
            f"{theirs.plain_seconds / mine.seconds:>6.1f} {theirs.seconds / mine.seconds:>6.1f}"
        )
    total = sum(r.seconds for r in ours)
    for name, times in (
        ("plain", [r.plain_seconds for r in published]),
        ("tuned", [r.seconds for r in published]),
    ):
        fixed = sum(
            t * PUBLISHED_ITERATIONS / r.iterations for t, r in zip(times, published, strict=True)
        )
        print(
            f"total, {name}: {sum(times):.1f} s against {total:.2f} s, ratio "
            f"{sum(times) / total:.1f} (with {PUBLISHED_ITERATIONS} iterations at every n, "
            f"whatever their overlap: {fixed:.1f} s, ratio {fixed / total:.1f})"
        )
    for who, results in (("published", published), ("ours", ours)):
        short = [n for n, r in zip(sizes, results, strict=True) if r.overlap < OVERLAP]
        if short:
            print(f"{who}: overlap below {OVERLAP} at n = {', '.join(map(str, short))}")


def converged_subspaces(teacher: Teacher, sizes: list[int], *, seed: int) -> list[Tensor]:
    """The leading eigenvectors at each n, in float64 to a residual of 1e-8: the common target."""
    samples = Samples(teacher, "train", seed=seed, dtype=torch.float64)
    block = start(teacher, 32, seed=seed)
    found = []
    for n in sizes:
        pairs = leading_eigenpairs(
            MomentMatrix(samples, n).apply,
            block,
            teacher.n_directions,
            tolerance=1e-8,
            max_iterations=2000,
            name=f"reference, n = {n}",
        )
        found.append(pairs.vectors)
        block = pairs.block
    return found


def estimator(
    teacher: Teacher,
    sizes: list[int],
    exact: list[Tensor],
    *,
    seed: int,
    tolerance: float,
    memory_mb: float,
) -> tuple[list[Result], float]:
    """Ours, as ``recover_features`` runs it, and the GFLOP/s of its products."""
    began = time.perf_counter()
    samples = Samples(teacher, "train", seed=seed, memory_mb=memory_mb)
    width = min(teacher.feature_dimension, 16 * -(-(teacher.n_directions + 4) // 16))
    block = start(teacher, width, seed=seed)
    results, operations, busy = [], 0.0, 0.0
    for n, target in zip(sizes, exact, strict=True):
        moment = MomentMatrix(samples, n)

        def product(vectors: Tensor, moment: MomentMatrix = moment) -> Tensor:
            nonlocal operations, busy
            tick = time.perf_counter()
            image = moment.apply(vectors)
            busy += time.perf_counter() - tick
            operations += 4.0 * moment.sample_size * moment.size * len(vectors)
            return image

        pairs = leading_eigenpairs(
            product,
            block,
            teacher.n_directions,
            tolerance=tolerance,
            max_iterations=2000,
            name=f"moment matrix, n = {n}",
        )
        block = pairs.block
        seconds = time.perf_counter() - began
        results.append(Result(pairs.iterations, seconds, overlap(pairs.vectors, target)))
        began = time.perf_counter()
    return results, operations / busy / 1e9


def subspace_iteration(
    teacher: Teacher, sample_size: int, target: Tensor, *, seed: int, cap: int
) -> Published:
    """The published method, at least 15 iterations, more until the overlap is reached.

    A vector of feature space is a symmetric d x d matrix V. Its feature is the quadratic form
    <F, V> = (x^T V x - tr V) / sqrt 2, and
    C V = (1/n) sum_mu (y_mu - ybar) <F_mu, V> (x_mu x_mu^T - I) / sqrt 2.
    """
    began = time.perf_counter()
    d, width = teacher.dimension, teacher.n_directions + OVERSAMPLING
    samples = Samples(teacher, "train", seed=seed, memory_mb=0.0)  # nothing is kept but labels
    labels = samples.labels(sample_size)
    weights = torch.from_numpy((labels - labels.mean()) / sample_size).float()
    draws = generator(seed, "published start").standard_normal((width, d, d))
    block = torch.from_numpy(draws + draws.transpose(0, 2, 1)).float()
    block = orthonormal(block)
    seconds, needed, reached, iteration = time.perf_counter() - began, None, 0.0, 0
    while iteration < PUBLISHED_ITERATIONS or (needed is None and iteration < cap):
        iteration += 1
        began = time.perf_counter()
        image = apply_matrices(samples, weights, block, batch=TUNED_BATCH)
        # Left singular vectors of C V, by decreasing singular value: the Ritz order.
        left = torch.linalg.svd(image.view(width, -1).T, full_matrices=False)[0]
        block = left.T.contiguous().view(width, d, d)
        seconds += time.perf_counter() - began
        reached = overlap(flattened(block[: teacher.n_directions]), target)
        if needed is None and reached >= OVERLAP:
            needed = iteration
    began = time.perf_counter()
    apply_matrices(samples, weights, block, batch=GENERATION_BLOCK)
    plain = (time.perf_counter() - began) * iteration
    return Published(iteration, seconds, reached, needed, plain)


def apply_matrices(samples: Samples, weights: Tensor, block: Tensor, *, batch: int) -> Tensor:
    """C V for k symmetric matrices V (k x d x d), with inputs drawn anew."""
    traces = block.diagonal(dim1=1, dim2=2).sum(1)
    image, total = torch.zeros_like(block), torch.zeros(len(block))
    for start_at, inputs in samples.input_blocks(len(weights)):
        for low in range(0, inputs.shape[1], batch):
            x = inputs[:, low : low + batch].T.contiguous()
            forms = (torch.matmul(x, block) * x).sum(-1) - traces[:, None]
            forms *= weights[start_at + low : start_at + low + len(x)]
            image += torch.matmul((forms[:, :, None] * x).transpose(1, 2), x)
            total += forms.sum(1)
    return (image - total[:, None, None] * torch.eye(image.shape[1])) / 2


def orthonormal(block: Tensor) -> Tensor:
    """Orthonormal matrices that span ``block``, in the inner product tr(V W)."""
    basis: Tensor = torch.linalg.qr(block.view(len(block), -1).T)[0]
    return basis.T.contiguous().view_as(block)


def flattened(block: Tensor) -> Tensor:
    """Feature vectors (k x D) of symmetric matrices: V_ii, and sqrt 2 V_ij for i < j."""
    i, j = (torch.from_numpy(index) for index in index_pairs(block.shape[1]))
    return block[:, i, j].double() * torch.where(i == j, 1.0, math.sqrt(2.0)).double()


def overlap(vectors: Tensor, target: Tensor) -> float:
    """||U^T U*||_F^2 / d1 of two bases with orthonormal rows."""
    basis = torch.linalg.qr(vectors.double().T)[0]
    return float((target @ basis).square().sum() / len(target))


def start(teacher: Teacher, width: int, *, seed: int) -> Tensor:
    """Random rows to begin with."""
    shape = (min(width, teacher.feature_dimension), teacher.feature_dimension)
    return torch.from_numpy(generator(seed, "start").standard_normal(shape))


def matmul_gflops(size: int = 2048, repeats: int = 5) -> float:
    """Speed of a plain float32 matrix product on this machine, best of a few."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    product, times = torch.empty(size, size), []
    for _ in range(repeats):
        tick = time.perf_counter()
        torch.mm(left, right, out=product)
        times.append(time.perf_counter() - tick)
    return 2.0 * size**3 / min(times) / 1e9


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    typer.run(main)
