"""The spectrum of C, whole or by quadrature."""

import numpy as np
import pytest
from torch import float64

from spectral_laws.errors import ConfigError
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.spectrum import lanczos_quadrature, moment_spectrum, tabulate_spectrum
from spectral_laws.recovery.study import draw_teacher
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.recovery.theory import bulk_density, bulk_edges
from spectral_laws.settings.recovery import SpectrumPoint, TeacherFamily
from spectral_laws.tables.schemas import load_schema


@pytest.fixture(scope="module")
def moment():
    teacher = Teacher.draw(dimension=9, n_directions=3, gamma=0.4, seed=2)
    return MomentMatrix(Samples(teacher, "train", seed=2, dtype=float64), 2000)


def test_dense_spectrum(moment):
    values, masses = moment_spectrum(moment)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(moment.dense()), atol=1e-12)
    np.testing.assert_allclose(masses, 1 / 45)


def test_quadrature_over_all_unit_vectors_is_exact(moment):
    """Sum over basis vectors of e^T f(C) e is the trace, and D steps integrate any f exactly."""
    values, masses = lanczos_quadrature(moment, np.eye(45), steps=45)
    exact = np.linalg.eigvalsh(moment.dense())
    assert np.all(np.diff(values) >= 0)
    for f in (np.square, np.exp, np.abs, lambda v: v**7):
        assert masses @ f(values) == pytest.approx(np.mean(f(exact)), rel=1e-8)


def test_few_steps_integrate_low_moments_exactly(moment):
    """k steps are exact for polynomials up to degree 2k - 1."""
    start = np.random.default_rng(0).standard_normal((3, 45))
    values, masses = lanczos_quadrature(moment, start, steps=4)
    dense, unit = moment.dense(), start / np.linalg.norm(start, axis=1, keepdims=True)
    for power in range(8):
        expected = np.mean(
            np.einsum("pi,ij,pj->p", unit, np.linalg.matrix_power(dense, power), unit)
        )
        assert masses @ values**power == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert abs(masses @ values**8 / np.mean(
        np.einsum("pi,ij,pj->p", unit, np.linalg.matrix_power(dense, 8), unit)
    ) - 1) > 1e-6  # fmt: skip


def test_quadrature_above_the_dense_limit_follows_the_distribution(moment):
    values, masses = moment_spectrum(moment, dense_limit=44, probes=200, steps=40, seed=1)
    exact = np.linalg.eigvalsh(moment.dense())
    assert masses.sum() == pytest.approx(1.0)
    assert len(values) == 200 * 40
    edges = np.quantile(exact, [0.1, 0.3, 0.5, 0.7, 0.9])
    ours = [masses[values <= edge].sum() for edge in edges]
    # 200 probes of 45 coordinates: standard deviation below 0.5 / sqrt(200 * 45 / 2) = 0.0075.
    np.testing.assert_allclose(ours, [np.mean(exact <= edge) for edge in edges], atol=0.04)


FAMILY = TeacherFamily.model_validate_json(
    '{"degree": 2, "width_exponent": 0.5, "gamma": 0.4, "rows": "orthonormal",'
    ' "readout": "tanh", "sample_exponents": {"start": 1.0, "stop": 3.5, "count": 4}}'
)


def test_table():
    point = SpectrumPoint(study="tiny", dimension=8, sample_exponent=3.0)
    table = tabulate_spectrum(FAMILY, point, seed=5)
    load_schema("recovery/spectrum").check(table)
    assert len(table) == 36
    assert set(table["sample_size"]) == {512}
    assert table["mass"].sum() == pytest.approx(1.0)
    assert table["eigenvalue"].is_monotonic_increasing
    teacher = draw_teacher(FAMILY, dimension=8, replicate=0, seed=5)
    law = LabelLaw.of(teacher.weights, readout="tanh")
    edges = tuple(table[["edge_low", "edge_high"]].drop_duplicates().to_numpy()[0])
    assert edges == bulk_edges(law, 36 / 512)
    np.testing.assert_array_equal(
        table["density"], bulk_density(law, 36 / 512, table["eigenvalue"])
    )
    samples = Samples(teacher, "train", 2, 8, 0, seed=5)
    exact = np.linalg.eigvalsh(MomentMatrix(samples, 512).dense())
    np.testing.assert_allclose(table["eigenvalue"], exact, atol=1e-6)


def test_density_of_the_table_is_that_of_gaussian_features():
    """Degree 1, D = 300, bounded labels: cumulated density against the ranks of the eigenvalues."""
    family = FAMILY.model_copy(update={"degree": 1})
    point = SpectrumPoint(study="tiny", dimension=300, sample_exponent=1.4)
    table = tabulate_spectrum(family, point, seed=5)
    values, density = table["eigenvalue"].to_numpy(), table["density"].to_numpy()
    inside = density > 0
    # All but the 17 outliers at most, and half the extreme spacing at each end.
    assert np.count_nonzero(~inside) <= 17 + 2
    cumulated = np.concatenate(
        [[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(values))]
    )
    ranks = (np.arange(len(values)) + 0.5) / len(values)
    assert np.abs(cumulated - ranks)[inside].max() < 0.04
    assert cumulated[-1] == pytest.approx(1.0, abs=0.04)


def test_too_small_a_sample_is_a_configuration_error():
    point = SpectrumPoint(study="tiny", dimension=8, sample_exponent=0.1)
    with pytest.raises(ConfigError, match=r"sample_exponent 0.1 gives n = 1 < 2"):
        tabulate_spectrum(FAMILY, point, seed=5)
