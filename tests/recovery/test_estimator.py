"""The moment matrix and its leading eigenpairs against dense linear algebra."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.hermite import hermite_features
from spectral_laws.recovery.krylov import leading_eigenpairs
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.teacher import Teacher


def dense_moment(samples, n):
    """C by its definition, with the -I term."""
    features = hermite_features(samples.inputs(n), samples.teacher.degree)
    labels = samples.labels(n)
    total = np.zeros((features.shape[1], features.shape[1]))
    for y, f in zip(labels - labels.mean(), features, strict=True):
        total += y * (np.outer(f, f) - np.eye(len(f)))
    return total / n


def make(degree, dtype=torch.float64, readout="identity"):
    dimension = {1: 30, 2: 9, 3: 6}[degree]
    teacher = Teacher.draw(
        dimension=dimension, degree=degree, n_directions=4, gamma=0.4, readout=readout, seed=1
    )
    return Samples(teacher, "train", seed=1, dtype=dtype)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("readout", ["identity", "tanh", "relu"])
def test_matrix_free_equals_definition(degree, readout):
    samples, n = make(degree, readout=readout), 4500
    expected = dense_moment(samples, n)
    moment = MomentMatrix(samples, n)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(moment.dense(), expected, atol=1e-12 * scale)
    vectors = np.random.default_rng(0).standard_normal((5, moment.size))
    applied = moment.apply(torch.from_numpy(vectors)).numpy()
    np.testing.assert_allclose(applied, vectors @ expected, atol=1e-11 * scale)
    np.testing.assert_allclose(
        moment.compress(vectors), vectors @ expected @ vectors.T, atol=1e-10 * scale
    )


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("n", [25, 400, 20_000])
def test_eigenpairs_equal_dense_ones(degree, n):
    samples = make(degree)
    values, columns = np.linalg.eigh(dense_moment(samples, n))
    order = np.argsort(-np.abs(values))[:4]
    moment = MomentMatrix(samples, n)
    start = torch.from_numpy(np.random.default_rng(1).standard_normal((6, moment.size)))
    pairs = leading_eigenpairs(
        moment.apply, start, 4, tolerance=1e-10, max_iterations=100, name="C"
    )
    scale = np.abs(values).max()
    np.testing.assert_allclose(pairs.values.numpy(), values[order], atol=1e-6 * scale)
    # The subspace, when the next eigenvalue is apart from it.
    others = np.abs(np.delete(values, order))
    assert np.abs(values[order]).min() - others.max() > 1e-4 * scale
    cosines = np.linalg.svd(pairs.vectors.numpy() @ columns[:, order], compute_uv=False)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-6)


@pytest.mark.parametrize("degree", [1, 2])
def test_float32_agrees_with_float64(degree):
    n, found = 3000, []
    for dtype in (torch.float32, torch.float64):
        moment = MomentMatrix(make(degree, dtype), n)
        start = torch.from_numpy(np.random.default_rng(1).standard_normal((6, moment.size)))
        found.append(
            leading_eigenpairs(moment.apply, start, 4, tolerance=1e-5, max_iterations=100, name="C")
        )
    scale = float(found[1].values[0].abs())
    np.testing.assert_allclose(found[0].values, found[1].values, atol=1e-5 * scale)
    cosines = torch.linalg.svdvals(found[0].vectors @ found[1].vectors.T)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_localisation_is_the_largest_share_of_a_sample(degree):
    samples, n = make(degree), 4500
    moment = MomentMatrix(samples, n)
    vectors = np.random.default_rng(0).standard_normal((5, moment.size))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = samples.labels(n)
    latents = hermite_features(samples.inputs(n), degree) @ vectors.T
    terms = np.abs(labels - labels.mean())[:, None] * latents**2
    np.testing.assert_allclose(moment.localisation(vectors), terms.max(0) / terms.sum(0), rtol=1e-9)


def test_localisation_tells_one_heavy_label_from_a_direction_of_many_samples():
    """Gaussian features (degree 1), one label as large as all others together."""
    n, shares = 4000, {}
    for heavy in (False, True):
        samples = make(1)
        labels = samples.labels(n)
        if heavy:
            samples._labels[0][17] = np.abs(labels).sum()
        moment = MomentMatrix(samples, n)
        values, columns = np.linalg.eigh(moment.dense())
        top = columns[:, np.argsort(-np.abs(values))[:4]].T
        shares[heavy] = moment.localisation(top)
        if heavy:
            spike = samples.inputs(n)[17]
            assert (top[0] @ spike) ** 2 / (spike @ spike) > 0.9
    # Of n comparable terms the largest is a few log n / n of the whole.
    assert shares[False].max() < 0.05
    assert shares[True][0] > 0.5
    assert shares[True][1:].max() < 0.1


def test_localisation_falls_with_the_sample_size():
    samples, shares = make(2), []
    direction = samples.teacher.directions[:1]
    for n in (500, 5000, 50_000):
        shares.append(float(MomentMatrix(samples, n).localisation(direction)[0]))
    assert shares[2] < shares[1] / 2 < shares[0] / 4


def test_localisation_of_a_zero_matrix_is_zero():
    samples = make(1)
    samples.labels(10)
    samples._labels[0][:] = 3.0
    assert MomentMatrix(samples, 10).localisation(np.eye(30)[:2]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_same_sample_second_layer_is_diagonal_with_the_ritz_values(degree):
    samples, n = make(degree), 3000
    moment = MomentMatrix(samples, n)
    start = torch.from_numpy(np.random.default_rng(1).standard_normal((6, moment.size)))
    # A loose tolerance on purpose: the identity holds for Ritz pairs, converged or not.
    pairs = leading_eigenpairs(moment.apply, start, 4, tolerance=0.3, max_iterations=50, name="C")
    latents = hermite_features(samples.inputs(n), degree) @ pairs.vectors.numpy().T
    labels = samples.labels(n) - samples.labels(n).mean()
    explicit = np.zeros((4, 4))
    for y, h in zip(labels, latents, strict=True):
        explicit += y * (np.outer(h, h) - np.eye(4)) / n
    np.testing.assert_allclose(explicit, np.diag(pairs.values.numpy()), atol=1e-10)


def symmetric(values, seed=0):
    """A matrix with these eigenvalues."""
    size = len(values)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]
    return basis, torch.from_numpy(basis @ np.diag(values) @ basis.T)


@settings(deadline=None, max_examples=40)
@given(
    size=st.integers(5, 60),
    count=st.integers(1, 4),
    extra=st.integers(0, 4),
    rank=st.integers(0, 60),
    seed=st.integers(0, 10**6),
)
def test_random_symmetric_matrices(size, count, extra, rank, seed):
    random = np.random.default_rng(seed)
    values = random.standard_normal(size)
    values[min(rank, size) :] = 0.0
    _, matrix = symmetric(values, seed)
    width = min(count + extra, size)
    pairs = leading_eigenpairs(
        lambda v: v @ matrix,
        torch.from_numpy(random.standard_normal((width, size))),
        count,
        tolerance=1e-9,
        max_iterations=500,
        name="matrix",
    )
    expected = np.sort(np.abs(values))[::-1][:count]
    np.testing.assert_allclose(pairs.values.abs().numpy(), expected, atol=1e-7)
    np.testing.assert_allclose(pairs.vectors @ pairs.vectors.T, np.eye(count), atol=1e-10)
    residual = pairs.vectors @ matrix - pairs.values[:, None] * pairs.vectors
    assert float(torch.linalg.vector_norm(residual, dim=1).max()) <= 1e-8


def test_restarts_reach_the_same_pairs():
    # A bulk with both ends close to the wanted values, far more steps than the basis holds.
    values = np.concatenate([np.linspace(-1, 1, 400), [1.05, -1.06, 1.1, -1.2]])
    basis, matrix = symmetric(values)
    start = torch.from_numpy(np.random.default_rng(3).standard_normal((4, len(values))))
    pairs = leading_eigenpairs(
        lambda v: v @ matrix, start, 4, tolerance=1e-9, max_iterations=400, name="C", max_basis=16
    )
    assert pairs.iterations * 4 > 2 * 16
    np.testing.assert_allclose(pairs.values, [-1.2, 1.1, -1.06, 1.05], atol=1e-10)
    overlap = np.abs(np.sum(pairs.vectors.numpy() * basis[:, [403, 402, 401, 400]].T, axis=1))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-10)


def test_warm_start_saves_passes_and_changes_nothing():
    values = np.concatenate([np.linspace(-1, 1, 300), [1.3, -1.4, 1.5]])
    _, matrix = symmetric(values)
    noise = torch.from_numpy(np.random.default_rng(9).standard_normal((303, 303)))
    nearby = matrix + 1e-3 * (noise + noise.T) / 2
    cold = torch.from_numpy(np.random.default_rng(3).standard_normal((5, 303)))

    def solve(of, start):
        return leading_eigenpairs(
            lambda v: v @ of, start, 3, tolerance=1e-8, max_iterations=100, name="C"
        )

    warm = solve(nearby, solve(matrix, cold).block)
    reference = solve(nearby, cold)
    assert warm.iterations < reference.iterations
    np.testing.assert_allclose(warm.values, reference.values, atol=1e-10)
    overlaps = (warm.vectors * reference.vectors).sum(1).abs()
    np.testing.assert_allclose(overlaps, 1.0, atol=1e-10)


def test_zero_matrix_has_zero_eigenvalues():
    start = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 8)))
    pairs = leading_eigenpairs(
        torch.zeros_like, start, 2, tolerance=1e-6, max_iterations=5, name="C"
    )
    assert pairs.values.tolist() == [0.0, 0.0]
    assert pairs.residual == 0.0


def test_no_convergence_is_an_error_that_names_everything():
    _, matrix = symmetric(np.linspace(-1, 1, 200))
    start = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 200)))
    with pytest.raises(NumericalError, match=r"moment of n = 7: .* 4 iterations, residual .*e-0"):
        leading_eigenpairs(
            lambda v: v @ matrix,
            start,
            3,
            tolerance=1e-9,
            max_iterations=4,
            name="moment of n = 7",
        )


def test_nan_is_an_error():
    start = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 20)))
    with pytest.raises(NumericalError, match="moment: the products with C are NaN"):
        leading_eigenpairs(
            lambda v: v * np.nan, start, 3, tolerance=1e-4, max_iterations=4, name="moment"
        )


def test_bad_arguments():
    with pytest.raises(ValueError, match="count <= block <= D"):
        leading_eigenpairs(
            lambda v: v, torch.ones(2, 9), 3, tolerance=1e-4, max_iterations=4, name="C"
        )
    with pytest.raises(ValueError, match="sample_size must be at least 2"):
        MomentMatrix(make(1), 1)
