"""The population moment matrix against exact moments, sampled ones and dense linear algebra."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import LinearOperator, eigsh

from spectral_laws.errors import ConfigError
from spectral_laws.recovery.hermite import hermite_features
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.overlaps import direction_cos2
from spectral_laws.recovery.population import (
    PopulationMoment,
    leading_population_pairs,
    population_moment,
    population_tilt,
    tabulate_population,
)
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.settings.recovery import Population, SampleExponents, TeacherFamily


def draw(dimension, degree=2, n_directions=3, rows="orthonormal", seed=3):
    return Teacher.draw(
        dimension=dimension,
        degree=degree,
        n_directions=n_directions,
        gamma=0.4,
        rows=rows,
        seed=seed,
    )


def exact_moment(teacher):
    """E[(y - E y) F F^T] by Gauss-Hermite quadrature: y F F^T has degree 8 at most."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    x = np.array(list(itertools.product(nodes, repeat=teacher.dimension)))
    w = np.array([math.prod(p) for p in itertools.product(weights, repeat=teacher.dimension)])
    features, labels = hermite_features(x, teacher.degree), teacher.labels(x)
    return features.T @ ((w * (labels - w @ labels))[:, None] * features)


@pytest.mark.parametrize("rows", ["orthonormal", "gaussian"])
@pytest.mark.parametrize(("dimension", "degree"), [(2, 1), (3, 1), (2, 2), (3, 2)])
def test_equals_exact_moments(dimension, degree, rows):
    teacher = draw(dimension, degree, n_directions=2, rows=rows)
    expected = exact_moment(teacher)
    np.testing.assert_allclose(population_moment(teacher), expected, atol=1e-10)
    assert np.abs(expected).max() > 0.1


def test_equals_mean_of_sampled_moments():
    teacher = draw(10)
    blocks = np.array(
        [
            MomentMatrix(Samples(teacher, "block", b, seed=5, dtype=torch.float64), 20_000).dense()
            for b in range(20)
        ]
    )
    error = blocks.std(axis=0, ddof=1) / math.sqrt(len(blocks))

    def mean_square_score(expected):
        return np.mean(((blocks.mean(axis=0) - expected) / error) ** 2)

    # Scores of 20 blocks have mean square 19/17 if the expectation is right.
    assert 0.7 < mean_square_score(population_moment(teacher)) < 1.6
    low_rank = math.sqrt(2) * (teacher.directions.T * teacher.weights) @ teacher.directions
    assert mean_square_score(low_rank) > 5


def test_degree_1_is_the_low_rank_matrix():
    teacher = draw(12, degree=1)
    expected = math.sqrt(2) * (teacher.directions.T * teacher.weights) @ teacher.directions
    np.testing.assert_allclose(population_moment(teacher), expected, atol=1e-14)
    moment = PopulationMoment(teacher)
    rows = torch.eye(12, dtype=torch.float64)
    assert not moment.beyond_low_rank(rows).any()
    assert moment.bulk_scale() == 0.0
    np.testing.assert_allclose(moment.signals(), math.sqrt(2) * teacher.weights, atol=1e-14)


def test_noise_on_labels_changes_nothing():
    teacher = draw(6)
    noisy = Teacher(
        teacher.directions, teacher.weights, teacher.dimension, teacher.degree, noise=0.5
    )
    np.testing.assert_array_equal(population_moment(noisy), population_moment(teacher))


@pytest.mark.parametrize("degree", [1, 2])
def test_products_are_symmetric_and_those_of_the_matrix(degree):
    teacher = draw(9, degree)
    moment = PopulationMoment(teacher)
    applied = moment.apply(torch.eye(moment.size, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(applied, applied.T, atol=1e-14)
    rows = np.random.default_rng(0).standard_normal((4, moment.size))
    np.testing.assert_allclose(
        moment.apply(torch.from_numpy(rows)).numpy(), rows @ population_moment(teacher), atol=1e-13
    )


@pytest.mark.parametrize(("degree", "readout"), [(2, "tanh"), (1, "relu"), (3, "identity")])
def test_unknown_population_is_refused(degree, readout):
    teacher = Teacher.draw(
        dimension=5, degree=degree, n_directions=2, gamma=0.4, readout=readout, seed=1
    )
    with pytest.raises(ConfigError, match=f"readout {readout} and degree {degree}"):
        population_moment(teacher)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_krylov_pairs_equal_dense_ones(seed):
    # At this size some seeds hide a direction in the bulk: the Krylov method must not miss it.
    teacher = draw(30, n_directions=5, seed=seed)
    dense = leading_population_pairs(teacher, 5, dense_limit=465)
    values, rows = leading_population_pairs(teacher, 5, dense_limit=464)
    np.testing.assert_allclose(values, dense[0], atol=1e-6 * abs(dense[0][0]))
    np.testing.assert_allclose(rows @ rows.T, np.eye(5), atol=1e-10)
    expected = direction_cos2(teacher.unit_directions, dense[1])
    np.testing.assert_allclose(direction_cos2(teacher.unit_directions, rows), expected, atol=1e-4)


def test_a_bulk_eigenvector_that_outranks_a_direction_is_not_missed():
    # Against ARPACK from a random start. Here the tenth eigenvector is one of the bulk, and a
    # Krylov method that stops as soon as ten pairs started from the teacher's rows have converged
    # takes the tenth direction for it.
    teacher = draw(100, n_directions=10, seed=1)
    moment = PopulationMoment(teacher)
    operator = LinearOperator(
        (moment.size, moment.size),
        matvec=lambda v: moment.apply(torch.from_numpy(v.reshape(1, -1).copy())).numpy()[0],
        dtype=np.float64,
    )
    start = np.random.default_rng(0).standard_normal(moment.size)
    expected, columns = eigsh(operator, k=10, which="LM", v0=start, tol=1e-8)
    values, rows = leading_population_pairs(teacher, 10)
    np.testing.assert_allclose(np.sort(values), np.sort(expected), atol=1e-5)
    cos2 = direction_cos2(teacher.unit_directions, columns.T)
    assert cos2.min() < 0.01
    np.testing.assert_allclose(direction_cos2(teacher.unit_directions, rows), cos2, atol=1e-4)


@pytest.mark.parametrize("count", [2, 15])
def test_count_outside_its_range_is_refused(count):
    with pytest.raises(ValueError, match=r"count must be in 3\.\.14"):
        leading_population_pairs(draw(5), count)


def test_bulk_scale_is_the_norm_of_the_anticommutator():
    teacher = draw(7)
    moment = PopulationMoment(teacher)
    matrices = moment._matrices(torch.from_numpy(teacher.directions)).numpy()
    second = np.einsum("i,iab,ibc->ac", teacher.weights, matrices, matrices)
    identity = np.eye(7)
    # On all d x d matrices; the symmetric ones hold the eigenvector of the largest eigenvalue.
    dense = math.sqrt(8) * (np.kron(second, identity) + np.kron(identity, second))
    assert moment.bulk_scale() == pytest.approx(np.abs(np.linalg.eigvalsh(dense)).max(), rel=1e-12)


def test_estimate_converges_to_the_population_limit_not_to_the_teacher():
    teacher = draw(8, n_directions=3)
    _, limit = leading_population_pairs(teacher, 3)
    samples = Samples(teacher, "train", seed=2, dtype=torch.float64)
    overlaps = []
    for n in (30_000, 1_000_000):
        values, columns = np.linalg.eigh(MomentMatrix(samples, n).dense())
        estimate = columns[:, np.argsort(-np.abs(values))[:3]].T
        overlaps.append(np.sum((limit @ estimate.T) ** 2) / 3)
    teacher_overlap = direction_cos2(teacher.unit_directions, limit).mean()
    assert teacher_overlap < 0.9
    assert overlaps[1] > overlaps[0]
    assert overlaps[1] > 0.98


def test_tilt_is_the_loss_of_directions_above_the_bulk():
    teacher = draw(100, n_directions=6, seed=4)
    moment = PopulationMoment(teacher)
    assert np.abs(moment.signals()).min() > moment.bulk_scale()
    _, rows = leading_population_pairs(teacher, 6)
    loss = 1 - direction_cos2(teacher.unit_directions, rows)
    # Leading order in 1/d: corrections of order bulk_scale / signal, about 1/4 here, squared.
    np.testing.assert_allclose(loss, population_tilt(teacher.weights, 100), rtol=0.2)
    with pytest.raises(ValueError, match="zero"):
        population_tilt([0.5, 0.0], 100)


def test_tilt_of_a_lone_direction_is_that_of_its_cube():
    teacher = draw(200, n_directions=1)
    _, rows = leading_population_pairs(teacher, 1)
    loss = 1 - direction_cos2(teacher.unit_directions, rows)
    # lambda = 1, so that 12 (1 + 2) = 36; by lambda^2 alone in place of 2 lambda^2 it would be 24.
    np.testing.assert_allclose(loss, 36 / 200**2, rtol=0.15)
    np.testing.assert_allclose(population_tilt([1.0], 200), 36 / 200**2)


def test_table_holds_the_teachers_of_the_studies():
    population = Population(dimensions=(9, 12), width_exponent=0.5, gamma=0.4, seeds=2)
    table = tabulate_population(population, seed=11)
    assert list(table.columns) == [
        "dimension",
        "feature_dimension",
        "n_directions",
        "gamma",
        "seed",
        "direction",
        "weight",
        "cos2",
        "eigenvalue",
        "signal",
        "bulk_scale",
        "tilt",
    ]
    assert len(table) == 2 * (3 + 3)
    assert table.groupby(["dimension", "seed"]).direction.apply(list).tolist() == [[1, 2, 3]] * 4
    family = TeacherFamily(
        degree=2,
        width_exponent=0.5,
        gamma=0.4,
        rows="orthonormal",
        readout="identity",
        sample_exponents=SampleExponents(start=2.0, stop=3.0, count=2),
    )
    teacher = draw_teacher(family, dimension=12, replicate=1, seed=11)
    part = table[(table.dimension == 12) & (table.seed == 1)]
    np.testing.assert_array_equal(part.weight, teacher.weights)
    matrix = population_moment(teacher)
    values, columns = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))[:3]
    np.testing.assert_allclose(part.eigenvalue, values[order], atol=1e-12)
    cos2 = ((teacher.unit_directions @ columns[:, order]) ** 2).sum(1)
    np.testing.assert_allclose(part.cos2, cos2, atol=1e-10)
    units = teacher.unit_directions
    np.testing.assert_allclose(part.signal, np.diag(units @ matrix @ units.T), atol=1e-12)
