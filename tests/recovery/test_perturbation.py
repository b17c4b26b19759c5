"""First-order expansion and Davis-Kahan bound against closed forms and dense eigenvectors."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_laws.errors import ConfigError, NumericalError
from spectral_laws.recovery.hermite import hermite_features
from spectral_laws.recovery.perturbation import (
    Spectrum,
    match_directions,
    perturb,
    tabulate_perturbation,
)
from spectral_laws.recovery.population import population_moment
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.settings.recovery import RecoveryStudy, SampleExponents


def symmetric(size, seed):
    matrix = np.random.default_rng(seed).standard_normal((size, size))
    return (matrix + matrix.T) / 2


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def perturb_one(population, delta, index):
    spectrum = Spectrum.of(population)
    return perturb(spectrum, population + delta, np.array([index]))[0]


@pytest.mark.parametrize("size", [0.01, 0.3, 0.6])
def test_two_by_two_closed_form(size):
    moved = perturb_one(np.diag([0.0, 1.0]), np.array([[0.0, size], [size, 0.0]]), 1)
    tangent = math.tan(math.atan(2 * size) / 2)
    assert moved.operator_norm == pytest.approx(size, rel=1e-12)
    assert moved.gap == 1.0
    assert moved.sin_theta == pytest.approx(math.sin(math.atan(tangent)), rel=1e-12)
    assert moved.first_order_sin == pytest.approx(math.sin(math.atan(size)), rel=1e-12)
    assert moved.expansion_error == pytest.approx(size - tangent, rel=1e-9)
    assert moved.davis_kahan == pytest.approx(size, rel=1e-12)
    assert moved.resolved == (size < 0.5)


def test_kernel_of_a_low_rank_matrix_makes_its_term():
    # E = l u u^T: the expansion is u + (1/l) P_ker Delta u.
    u = rotation(6, 1)[:, 0]
    delta = 1e-4 * symmetric(6, 2)
    moved = perturb_one(-2.0 * np.outer(u, u), delta, 0)
    step = delta @ u - (u @ delta @ u) * u
    tangent = np.linalg.norm(step) / 2.0
    assert moved.first_order_sin == pytest.approx(tangent / math.hypot(1, tangent), rel=1e-8)
    values, columns = np.linalg.eigh(-2.0 * np.outer(u, u) + delta)
    exact = columns[:, np.argmin(values)]
    exact = exact / (exact @ u)
    assert moved.expansion_error == pytest.approx(np.linalg.norm(exact - u + step / 2.0), rel=1e-3)
    assert moved.gap == pytest.approx(2.0)


def test_expansion_error_is_of_second_order():
    population = np.diag([-1.5, 0.0, 0.0, 0.7, 1.1, 2.0])
    direction = symmetric(6, 3) / np.linalg.norm(symmetric(6, 3), 2)
    for index in (0, 3, 5):
        errors, sines = [], []
        for size in (2e-3, 1e-3):
            moved = perturb_one(population, size * direction, index)
            assert moved.operator_norm == pytest.approx(size, rel=1e-9)
            errors.append(moved.expansion_error)
            sines.append(moved.sin_theta)
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
        assert sines[0] / sines[1] == pytest.approx(2.0, rel=0.05)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    log_size=st.floats(-3, 0.5),
    index=st.integers(0, 7),
    scale=st.floats(0.1, 10),
)
def test_bounds_hold_and_the_frame_does_not_matter(seed, log_size, index, scale):
    population = np.diag(np.sort(np.random.default_rng(seed).standard_normal(8)))
    delta = 10**log_size * symmetric(8, seed + 1)
    moved = perturb_one(population, delta, index)
    # sin 2 theta theorem, with the gap of the unperturbed matrix alone.
    cosine = math.sqrt(1 - moved.sin_theta**2)
    assert moved.sin_theta * cosine <= moved.davis_kahan * (1 + 1e-9)
    tangent = moved.first_order_sin / math.sqrt(1 - moved.first_order_sin**2)
    assert tangent <= moved.davis_kahan * (1 + 1e-9)
    frame = scale**0.5 * rotation(8, seed + 2)
    turned = perturb_one(frame @ population @ frame.T, frame @ delta @ frame.T, index)
    assert turned.sin_theta == pytest.approx(moved.sin_theta, rel=1e-5, abs=1e-9)
    assert turned.davis_kahan == pytest.approx(moved.davis_kahan, rel=1e-6)
    assert turned.operator_norm == pytest.approx(scale * moved.operator_norm, rel=1e-9)


def test_eigenvalue_that_is_not_simple_is_refused():
    with pytest.raises(ValueError, match="not simple"):
        perturb_one(np.diag([0.0, 1.0, 1.0]), np.zeros((3, 3)), 2)


def test_nan_is_refused():
    with pytest.raises(NumericalError, match="matrix of a spectrum"):
        Spectrum.of(np.full((2, 2), np.nan))


def test_directions_of_degree_1_are_matched_exactly():
    teacher = Teacher.draw(dimension=14, degree=1, n_directions=5, gamma=0.7, seed=1)
    population = Spectrum.of(population_moment(teacher))
    indices = match_directions(teacher, population)
    np.testing.assert_allclose(
        population.values[indices], math.sqrt(2) * teacher.weights, atol=1e-12
    )


def make_study(**changes):
    values = {
        "degree": 1,
        "width": 2,
        "gamma": 1.0,
        "rows": "orthonormal",
        "readout": "identity",
        "sample_exponents": SampleExponents(start=2.0, stop=3.5, count=3),
        "dimensions": (12,),
        "seeds": 2,
    }
    return RecoveryStudy(**(values | changes))


@pytest.mark.parametrize(("degree", "dimension"), [(1, 12), (2, 6)])
def test_table_equals_its_definition(degree, dimension):
    study = make_study(degree=degree, dimensions=(dimension,))
    table = tabulate_perturbation("name", study, seed=4)
    assert len(table) == 2 * 3 * 2
    row = table[(table.seed == 1) & (table.direction == 2)].iloc[-1]
    teacher = draw_teacher(study, dimension=dimension, replicate=1, seed=4)
    n = int(row.sample_size)
    samples = Samples(teacher, "train", degree, dimension, 1, seed=4, dtype=torch.float64)
    features, labels = hermite_features(samples.inputs(n), degree), samples.labels(n)
    moment = features.T @ ((labels - labels.mean())[:, None] * features) / n
    population = population_moment(teacher)
    delta = moment - population
    values, columns = np.linalg.eigh(population)
    k = int(np.argmax((columns.T @ teacher.directions[1]) ** 2))
    u = columns[:, k]
    expansion = u.copy()
    for j in range(len(values)):
        if j != k:
            expansion += (columns[:, j] @ delta @ u) / (values[k] - values[j]) * columns[:, j]
    moved = np.linalg.eigh(moment)[1]
    exact = moved[:, np.argmax(np.abs(moved.T @ u))]
    assert row.weight == teacher.weights[1]
    assert row.eigenvalue == pytest.approx(values[k], rel=1e-10)
    assert row.operator_norm == pytest.approx(np.linalg.norm(delta, 2), rel=1e-8)
    assert row.gap == pytest.approx(np.abs(np.delete(values, k) - values[k]).min(), rel=1e-8)
    assert row.sin_theta == pytest.approx(math.sqrt(1 - (exact @ u) ** 2), rel=1e-6)
    error = np.linalg.norm(exact / (exact @ u) - expansion)
    assert row.expansion_error == pytest.approx(error, rel=1e-6)
    assert row.davis_kahan == pytest.approx(row.operator_norm / row.gap)
    assert row.resolved == (row.operator_norm < row.gap / 2)


def test_noise_norm_falls_and_does_not_depend_on_memory():
    study = make_study(sample_exponents=SampleExponents(start=2.0, stop=4.0, count=3))
    table = tabulate_perturbation("name", study, seed=4)
    norms = table.groupby(["seed", "sample_size"]).operator_norm.first().unstack()
    assert (np.diff(norms, axis=1) < 0).all()
    # From n to 144 n, -1/2 means a factor 12.
    ratio = (norms.iloc[:, 0] / norms.iloc[:, -1]).mean()
    assert 7 < ratio < 20
    regenerated = tabulate_perturbation("name", study, seed=4, memory_mb=0.0)
    np.testing.assert_array_equal(regenerated.sin_theta, table.sin_theta)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": "equivalent"}, "perturbation.name: features must be hermite"),
        ({"readout": "tanh"}, "readout tanh and degree 1"),
        ({"degree": 3, "dimensions": (4,)}, "readout identity and degree 3"),
        ({"gamma": 0.0, "width": 5}, "perturbation.name: gamma 0.0 gives directions of equal"),
    ],
)
def test_studies_without_a_known_population_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        tabulate_perturbation("name", make_study(**changes), seed=4)
