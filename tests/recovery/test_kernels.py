"""Kernel ridge regression against brute force and another library."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge

from spectral_laws.config import Evaluation, KernelRidge, TeacherFamily
from spectral_laws.errors import ConfigError
from spectral_laws.recovery.kernels import (
    fit_kernel_ridge,
    leave_one_out,
    polynomial_kernel,
    tabulate_kernel_ridge,
)
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import STUDY_COLUMNS, draw_teacher

RANDOM = np.random.default_rng(4)
X, Y = RANDOM.standard_normal((40, 3)), 2.0 + RANDOM.standard_normal(40)


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_leave_one_out_equals_brute_force(power, ridge):
    kernel = polynomial_kernel(X, X, power=power)
    centred = Y - Y.mean()
    residuals, _ = leave_one_out(*scipy.linalg.eigh(kernel), centred, ridge)
    for left_out in range(len(X)):
        kept = np.arange(len(X)) != left_out
        system = kernel[np.ix_(kept, kept)] + ridge * np.eye(len(X) - 1)
        prediction = kernel[left_out, kept] @ np.linalg.solve(system, centred[kept])
        assert residuals[left_out] == pytest.approx(centred[left_out] - prediction, rel=1e-7)


@pytest.mark.parametrize("power", [2, 4])
def test_predictions_equal_scikit_learn(power):
    new = RANDOM.standard_normal((5000, 3))  # more rows than are predicted at a time
    ours = fit_kernel_ridge(X, Y, power=power, ridges=[0.3])
    reference = ScikitKernelRidge(alpha=0.3, kernel="poly", degree=power, gamma=1 / 3, coef0=1)
    reference.fit(X, Y - Y.mean())
    np.testing.assert_allclose(
        ours.predict(new), reference.predict(new) + Y.mean(), rtol=1e-8, atol=1e-8
    )


def test_ridge_of_the_smallest_leave_one_out_error_is_taken():
    ridges = [1e-4, 1e-2, 1.0, 100.0]
    fits = [fit_kernel_ridge(X, Y, power=2, ridges=[ridge]) for ridge in ridges]
    best = min(fits, key=lambda fit: fit.loo_error)
    chosen = fit_kernel_ridge(X, Y, power=2, ridges=ridges)
    assert (chosen.ridge, chosen.loo_error) == (best.ridge, pytest.approx(best.loo_error))
    assert len({fit.loo_error for fit in fits}) == 4


@pytest.mark.parametrize("ridges", [[], [1.0, 0.0]])
def test_bad_ridges(ridges):
    with pytest.raises(ValueError, match="ridges must be positive"):
        fit_kernel_ridge(X, Y, power=2, ridges=ridges)


FAMILY = TeacherFamily.model_validate_json(
    '{"degree": 1, "width_exponent": 0.5, "gamma": 0.4, "rows": "orthonormal",'
    ' "readout": "identity", "sample_exponents": {"start": 1.0, "stop": 3.5, "count": 4}}'
)
EVALUATION = Evaluation(test_size=2000, readout_size=500, readout_degree=3, ridge=1e-3)


def kernel_table(max_sample_size):
    settings = KernelRidge(max_sample_size=max_sample_size, ridges=(1e-6, 1e-2))
    return tabulate_kernel_ridge(
        "tiny", FAMILY, EVALUATION, settings, dimension=6, replicate=1, seed=3
    )


def test_table_learns_with_enough_samples():
    table = kernel_table(600)
    assert list(table.columns) == [*STUDY_COLUMNS, "sample_size", "ridge", "loo_error", "mse"]
    assert table["sample_size"].tolist() == [6, 27, 119, 529]
    assert set(table["seed"]) == {1}
    # The labels are a polynomial of the kernel's degree with 28 coefficients.
    assert table["mse"].iloc[-1] < 1e-3
    assert table["mse"].iloc[0] > 0.3
    pd.testing.assert_frame_equal(table.iloc[:3], kernel_table(400))


def test_table_uses_the_spectral_methods_samples():
    teacher = draw_teacher(FAMILY, dimension=6, replicate=1, seed=3)
    samples = Samples(teacher, "train", 1, 6, 1, seed=3)
    fit = fit_kernel_ridge(samples.inputs(27), samples.labels(27), power=2, ridges=[1e-6, 1e-2])
    assert kernel_table(600)["loo_error"].iloc[1] == pytest.approx(fit.loo_error, rel=1e-9)


def test_grid_without_small_samples_is_a_configuration_error():
    family = FAMILY.model_copy(
        update={
            "sample_exponents": FAMILY.sample_exponents.model_copy(update={"start": 3.0}),
        }
    )
    with pytest.raises(ConfigError, match=r"kernel.max_sample_size 100 is below"):
        tabulate_kernel_ridge(
            "tiny",
            family,
            EVALUATION,
            KernelRidge(max_sample_size=100, ridges=(1.0,)),
            dimension=6,
            replicate=0,
            seed=3,
        )
