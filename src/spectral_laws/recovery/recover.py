"""The layer-wise spectral algorithm along a grid of sample sizes, with all its measurements."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spectral_laws.device import find_device
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.equivalent import simulate_equivalent
from spectral_laws.recovery.evaluate import Estimate, Evaluator, Recovery
from spectral_laws.recovery.krylov import Eigenpairs, leading_eigenpairs
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.overlaps import direction_cos2, matched_overlap
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.teacher import Readout, Teacher, respond
from spectral_laws.recovery.theory import predict
from spectral_laws.rng import generator, torch_seed

Matrix = NDArray[np.float64]
_DRAWN_AT_ONCE = 1 << 16
_SMALL_SHARE = 1 / 50
"""d1 / D up to which overlaps inside the bulk, of that order, may count as 0."""
_DENSE_SHARE = 16
"""Up to this many times the block width in features C is formed: cheaper than some eight passes."""


def recover_features(
    teacher: Teacher,
    sample_sizes: Sequence[int],
    *,
    seed: int = 0,
    replicate: int = 0,
    tolerance: float = 1e-4,
    max_iterations: int = 300,
    memory_mb: float = 1500.0,
    test_size: int = 20000,
    readout_size: int = 5000,
    readout_degree: int = 5,
    ridge: float = 1e-3,
    device: str = "cpu",
    dtype: Literal["float32", "float64"] = "float32",
) -> list[Recovery]:
    """Recover the teacher's directions from n samples, for each n of an increasing grid.

    The d1 leading eigenvectors of C = (1/n) sum (y - ybar)(F F^T - I) estimate the directions;
    hhat1 = U^T F, hhat2 = <A2, He_2(hhat1)> with three second layers A2, and a polynomial readout
    of hhat2 fitted on an independent sample (arXiv:2605.14567):

    - ``same_sample``: A2 = U^T C U = diag(theta), as published;
    - ``independent``: A2 from a second sample of the same size;
    - ``outliers``: the same sample, eigenvalues inside the bulk and spurious ones set to zero.

    The samples of each n are a prefix of the next one's; ``replicate`` is which of several
    independent streams under one seed. Inputs beyond ``memory_mb`` are drawn again on every pass.
    The eigenvectors' residuals must come below ``tolerance`` times the largest eigenvalue within
    ``max_iterations`` passes. The readout, Hermite polynomials up to ``readout_degree`` with
    penalty ``ridge``, is fitted to ``readout_size`` samples. Test labels have no noise. Bulk
    arithmetic is in ``dtype``; sums are float64.

    Raises:
        ConfigError: if the grid is not increasing or starts below 2, or the device is missing.
        NumericalError: if the eigenvectors do not converge, or labels are NaN or infinite.
    """
    sizes = _increasing(sample_sizes)
    place, number = find_device(device), getattr(torch, dtype)
    key = (teacher.degree, teacher.dimension, replicate)

    def stream(name: str, megabytes: float = np.inf, *, noiseless: bool = False) -> Samples:
        return Samples(
            teacher,
            name,
            *key,
            seed=seed,
            device=place,
            dtype=number,
            memory_mb=megabytes,
            noiseless=noiseless,
        )

    train = stream("train", memory_mb)
    # The second sample is read once per sample size: it gets the memory that is left.
    second = stream("second", max(0.0, memory_mb - train.megabytes(sizes[-1])))
    test, readout = stream("test", noiseless=True), stream("readout")
    law = LabelLaw.of(teacher.weights, readout=teacher.readout, noise=teacher.noise)
    evaluator = Evaluator(
        law=law,
        feature_dimension=teacher.feature_dimension,
        test_latents=test.project(test_size, teacher.directions),
        test_labels=test.labels(test_size),
        readout_labels=readout.labels(readout_size),
        degree=readout_degree,
        ridge=ridge,
    )
    random = generator(seed, "start", *key)
    start = random.standard_normal((_block_width(teacher), teacher.feature_dimension))
    block = torch.from_numpy(start).to(place)
    results = []
    for n in track(sizes, total=len(sizes), label="sample sizes"):
        moment = MomentMatrix(train, n)
        if moment.size <= _DENSE_SHARE * len(block):
            pairs = _dense_eigenpairs(moment, len(block), teacher.n_directions)
        else:
            pairs = leading_eigenpairs(
                moment.apply,
                block,
                teacher.n_directions,
                tolerance=tolerance,
                max_iterations=max_iterations,
                name=f"moment matrix of d = {teacher.dimension}, n = {n}",
            )
        block = pairs.block  # the next matrix is close: a warm start
        directions = pairs.vectors.cpu().numpy()
        estimate = Estimate(
            sample_size=n,
            eigenvalues=pairs.values.cpu().numpy(),
            cos2=direction_cos2(teacher.unit_directions, directions),
            matched_overlap=matched_overlap(teacher.unit_directions, directions),
            localisation=moment.localisation(directions),
            independent=MomentMatrix(second, n).compress(directions),
            iterations=pairs.iterations,
            residual=pairs.residual,
        )
        results.append(
            evaluator.measure(
                estimate,
                predict(law, teacher.feature_dimension / n),
                readout=readout.project(readout_size, directions),
                test=test.project(test_size, directions),
            )
        )
    return results


def _dense_eigenpairs(moment: MomentMatrix, width: int, count: int) -> Eigenpairs:
    """All eigenpairs of C itself, the leading ones kept; 2 n D^2 operations."""
    values, columns = np.linalg.eigh(moment.dense())
    order = np.argsort(-np.abs(values), kind="stable")[:width]
    vectors = torch.from_numpy(np.ascontiguousarray(columns.T[order]))
    kept = torch.from_numpy(values[order[:count]])
    return Eigenpairs(kept, vectors[:count], 0.0, 1, vectors)


def _increasing(sample_sizes: Sequence[int]) -> list[int]:
    sizes = list(sample_sizes)
    if not sizes or sizes[0] < 2 or any(b <= a for a, b in pairwise(sizes)):
        raise ConfigError(f"sample sizes must be increasing and at least 2, got {sizes}")
    return sizes


def _block_width(teacher: Teacher) -> int:
    """Vectors per pass: d1 and at least 4 guards, in the multiples of 16 that suit a CPU."""
    return min(teacher.feature_dimension, 16 * -(-(teacher.n_directions + 4) // 16))


def recover_equivalent(
    weights: ArrayLike,
    sample_sizes: Sequence[int],
    *,
    feature_dimension: int,
    readout: Readout = "identity",
    noise: float = 0.0,
    seed: int = 0,
    stream: tuple[str | int, ...] = (),
    tolerance: float = 1e-3,
    memory_mb: float = 4000.0,
    test_size: int = 20000,
    readout_size: int = 5000,
    readout_degree: int = 5,
    ridge: float = 1e-3,
    device: str = "cpu",
) -> list[Recovery]:
    """The same for the Gaussian-equivalent model, exact in law, without inputs x.

    Every sample size is an independent draw (:func:`.equivalent.simulate_equivalent`), unless d1 >
    D/50: overlaps inside the bulk, of order d1/D, then count, and normal inputs of dimension D are
    drawn as for degree 1 (samples of one n are then a prefix of the next). Eigenvectors inside the
    edges of the bulk need not converge; where the eigenvalue is no larger in magnitude than the
    bulk's larger edge, the overlaps, which vanish as D grows, count as 0 and the eigenvalue as that
    edge.

    ``weights`` are lambda, d1 numbers, of orthonormal rows; ``stream`` names this teacher's
    streams. ``memory_mb`` is for the Krylov basis. Other arguments are those of
    :func:`recover_features` and :class:`.teacher.Teacher`.

    Raises:
        ConfigError: if the grid is not increasing or starts below 2, or the device is missing.
        NumericalError: if the basis outgrows the memory.
    """
    sizes = _increasing(sample_sizes)
    place = find_device(device)
    lambdas = np.asarray(weights, dtype=np.float64)
    if len(lambdas) > _SMALL_SHARE * feature_dimension:
        return recover_features(
            Teacher(
                np.eye(len(lambdas), feature_dimension),
                lambdas,
                feature_dimension,
                1,
                readout,
                noise=noise,
            ),
            sizes,
            seed=torch_seed(seed, "equivalent", *stream),
            tolerance=tolerance,
            memory_mb=memory_mb,
            test_size=test_size,
            readout_size=readout_size,
            readout_degree=readout_degree,
            ridge=ridge,
            device=device,
        )
    law = LabelLaw.of(lambdas, readout=readout, noise=noise)
    width = len(lambdas)
    random = generator(seed, *stream, "evaluation")
    test, other_test = random.standard_normal((2, test_size, width))
    fitted, other_fitted = random.standard_normal((2, readout_size, width))
    evaluator = Evaluator(
        law=law,
        feature_dimension=feature_dimension,
        test_latents=test,
        test_labels=respond(test, lambdas, readout),
        readout_labels=respond(fitted, lambdas, readout)
        + noise * random.standard_normal(readout_size),
        degree=readout_degree,
        ridge=ridge,
    )
    results = []
    for n in track(sizes, total=len(sizes), label="sample sizes"):
        prediction = predict(law, feature_dimension / n)
        edges = prediction.edges
        drawn = simulate_equivalent(
            lambdas,
            feature_dimension=feature_dimension,
            sample_size=n,
            readout=readout,
            noise=noise,
            edges=edges,
            tolerance=tolerance,
            memory_mb=memory_mb,
            seed=seed,
            stream=(*stream, n),
            device=place,
        )
        # An outlier below the other side's edge is outranked by that bulk as D grows, but not by
        # Ritz values that have not converged.
        outside = np.abs(drawn.eigenvalues) > max(map(abs, edges))
        learner = _Learner(np.where(outside, drawn.overlaps, 0.0))
        residuals = np.where(outside, drawn.residuals, 0.0)
        estimate = Estimate(
            sample_size=n,
            eigenvalues=np.where(outside, drawn.eigenvalues, max(edges, key=abs)),
            cos2=(learner.overlaps**2).sum(axis=1),
            matched_overlap=np.abs(np.diag(learner.overlaps)),
            localisation=drawn.localisation,
            independent=learner.second_layer(
                lambdas,
                n,
                readout=readout,
                noise=noise,
                random=generator(seed, *stream, n, "second"),
            ),
            iterations=drawn.iterations,
            residual=float(residuals.max() / max(abs(drawn.eigenvalues[0]), 1e-300)),
        )
        results.append(
            evaluator.measure(
                estimate,
                prediction,
                readout=learner.latents(fitted, other_fitted),
                test=learner.latents(test, other_test),
            )
        )
    return results


class _Learner:
    """hhat1 = O^T h + L g, with O the overlaps <u_i, uhat_k> and L L^T = I - O^T O."""

    def __init__(self, overlaps: Matrix) -> None:
        self.overlaps = overlaps
        rest = np.eye(overlaps.shape[1]) - overlaps.T @ overlaps
        values, vectors = np.linalg.eigh(rest)
        self.rest = vectors * np.sqrt(np.maximum(values, 0.0))

    def latents(self, true: Matrix, other: Matrix) -> Matrix:
        """hhat1, n x d1, from h and independent normals g, both n x d1."""
        return np.asarray(true @ self.overlaps + other @ self.rest.T)

    def second_layer(
        self,
        weights: Matrix,
        sample_size: int,
        *,
        readout: Readout,
        noise: float,
        random: np.random.Generator,
    ) -> Matrix:
        """A2 = (1/n) sum (y - ybar) hhat1 hhat1^T of an independent sample."""
        width = len(weights)
        moments, squares = np.zeros((width, width)), np.zeros((width, width))
        total = 0.0
        for start in range(0, sample_size, _DRAWN_AT_ONCE):
            count = min(_DRAWN_AT_ONCE, sample_size - start)
            true, other = random.standard_normal((2, count, width), dtype=np.float32)
            learned = self.latents(true, other)
            labels = respond(true, weights, readout)
            if noise > 0:
                labels = labels + noise * random.standard_normal(count)
            moments += (learned * labels[:, None]).T @ learned
            squares += learned.T @ learned
            total += float(labels.sum())
        return (moments - total / sample_size * squares) / sample_size
