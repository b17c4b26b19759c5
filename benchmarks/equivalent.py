"""The Gaussian equivalent: exact simulation in law against the direct form.

Where both fit (D about 1000) the two are timed in one run: directly, C of n x D Gaussian features
through the block Krylov estimator with the features kept in memory. At the paper's size
(d = 400, D = 80200, n = 60 D) the direct form is counted alone: with our estimator
4 n D k operations per pass of a block of k vectors, and as published 15 passes of d1 + 10 vectors
in d x d form, 8 n D k each.

Run from the repository's root: ``python benchmarks/equivalent.py``.
"""

import resource
import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import typer

from spectral_laws.recovery import (
    LabelLaw,
    MomentMatrix,
    Samples,
    Teacher,
    feature_dimension,
    leading_eigenpairs,
    power_law_weights,
    predict,
    simulate_equivalent,
)

PUBLISHED_PASSES, OVERSAMPLING = 15, 10


@dataclass(frozen=True)
class Timed:
    """Cost and result of one run."""

    seconds: float
    operations: float
    cos2: np.ndarray


def draw_weights(dimension: int) -> np.ndarray:
    """Weights of the paper: d1 = floor(sqrt d), gamma = 0.4, random signs."""
    width = int(dimension**0.5)
    signs = np.random.default_rng(3).choice((-1.0, 1.0), width)
    return power_law_weights(width, 0.4) * signs


def in_law(weights: np.ndarray, size: int, sample_size: int) -> Timed:
    """The exact simulation in law."""
    law = LabelLaw.of(weights)
    edges = predict(law, size / sample_size).edges
    start = time.perf_counter()
    drawn = simulate_equivalent(
        weights, feature_dimension=size, sample_size=sample_size, edges=edges, seed=1
    )
    seconds = time.perf_counter() - start
    outside = (drawn.eigenvalues < edges[0]) | (drawn.eigenvalues > edges[1])
    cos2 = (drawn.overlaps[:, outside] ** 2).sum(axis=1)
    # 2 n c k to draw, 2 n c k to complete, 4 n c k for the two Gram blocks; sum of c k is c^2 / 2.
    return Timed(seconds, 4.0 * sample_size * drawn.basis**2, cos2)


def directly(weights: np.ndarray, size: int, sample_size: int) -> Timed:
    """The block Krylov estimator on drawn features, kept in memory."""
    teacher = Teacher(np.eye(len(weights), size), weights, size, 1)
    start = time.perf_counter()
    samples = Samples(teacher, "equivalent benchmark", seed=1, memory_mb=1e6)
    moment = MomentMatrix(samples, sample_size)
    width = 8 * -(-(len(weights) + 4) // 8)
    block = torch.from_numpy(np.random.default_rng(0).standard_normal((width, size)))
    pairs = leading_eigenpairs(
        moment.apply, block, len(weights), tolerance=1e-3, max_iterations=300, name="C"
    )
    seconds = time.perf_counter() - start
    cos2 = (pairs.vectors.numpy()[:, : len(weights)] ** 2).sum(axis=0)
    return Timed(seconds, 4.0 * sample_size * size * width * pairs.iterations, cos2)


def main(
    fast: Annotated[bool, typer.Option("--fast", help="Small sizes, for a check.")] = False,
) -> None:
    """Print seconds, operations, their ratios, peak memory and the distance from theory."""
    dimension = 20 if fast else 45
    size, weights = feature_dimension(dimension, 2), draw_weights(dimension)
    sample_size = 60 * size
    print(f"{torch.get_num_threads()} threads")
    print(f"both, d = {dimension}, D = {size}, n = {sample_size}:")
    law, direct = (f(weights, size, sample_size) for f in (in_law, directly))
    for name, timed in (("in law", law), ("direct", direct)):
        print(
            f"  {name}: {timed.seconds:.2f} s, {timed.operations:.2e} operations, "
            f"mean cos^2 {timed.cos2.mean():.4f}"
        )
    print(
        f"  ratio: {direct.seconds / law.seconds:.1f} in time, "
        f"{direct.operations / law.operations:.1f} in operations"
    )

    dimension = 64 if fast else 400
    size, weights = feature_dimension(dimension, 2), draw_weights(dimension)
    sample_size = 60 * size
    law = in_law(weights, size, sample_size)
    predicted = predict(LabelLaw.of(weights), size / sample_size).cos2
    width = len(weights)
    published = 8.0 * sample_size * size * (width + OVERSAMPLING) * PUBLISHED_PASSES
    ours = 4.0 * sample_size * size * 8 * -(-(width + 4) // 8) * 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"in law alone, d = {dimension}, D = {size}, n = {sample_size}:")
    print(f"  {law.seconds:.1f} s, {law.operations:.2e} operations, peak memory {peak:.0f} MB")
    print(f"  largest |cos^2 - sharp theory|: {np.abs(law.cos2 - predicted).max():.4f}")
    print(f"  operations of the published form over ours: {published / law.operations:.0f}")
    print(f"  operations of ten passes of our direct form over ours: {ours / law.operations:.0f}")


if __name__ == "__main__":
    typer.run(main)
