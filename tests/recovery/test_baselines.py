"""The table of baselines."""

import numpy as np
import pandas as pd
import pytest

from spectral_laws.errors import ConfigError
from spectral_laws.recovery.baselines import METHODS, tabulate_baselines
from spectral_laws.recovery.kernels import baseline_kernels, fit_kernel_ridge
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher
from spectral_laws.settings.recovery import Baselines, Evaluation, NetworkBaseline, TeacherFamily

FAMILY = TeacherFamily.model_validate_json(
    '{"degree": 1, "width": 2, "gamma": 0.4, "sample_exponents":'
    ' {"start": 0.3, "stop": 3.5, "count": 5}}'
)
EVALUATION = Evaluation(test_size=2000, readout_size=500, readout_degree=3, ridge=1e-3)
NETWORK = NetworkBaseline(width=16, epochs=20, batch_size=32, learning_rate=1e-2, weight_decay=0.1)
BASELINES = Baselines(
    studies=("tiny",),
    max_sample_size=600,
    ridges=(1e-6, 1e-2),
    random_features=100,
    network=NETWORK,
)
SIZES = [2, 7, 30, 126, 529]


def table(family=FAMILY, baselines=BASELINES, dimension=6):
    return tabulate_baselines(
        "tiny", family, EVALUATION, baselines, dimension=dimension, replicates=[1], seed=3
    )


@pytest.fixture(scope="module")
def tiny():
    return table()


def test_table_has_every_method_at_every_size(tiny):
    own = ["sample_size", "method", "ridge", "selection_error", "mse"]
    assert list(tiny.columns[-5:]) == own
    assert not set(own) & set(tiny.columns[:-5])
    assert set(tiny["study"]) == {"tiny"}
    assert set(tiny["seed"]) == {1}
    for method in METHODS:
        rows = tiny[tiny["method"] == method]
        assert rows["sample_size"].tolist() == (SIZES[2:] if method == "network" else SIZES)
        assert rows["ridge"].isna().all() == (method == "network")
        assert rows["ridge"].isna().any() == (method == "network")
    assert set(tiny["method"]) == set(METHODS)
    assert tiny["ridge"].dtype == np.float64
    assert set(tiny["ridge"].dropna()) == {1e-6, 1e-2}


def test_every_method_learns_and_its_selection_error_foretells_the_test_error(tiny):
    curves = tiny.pivot_table(
        index="method", columns="sample_size", values=["mse", "selection_error"]
    )
    last = curves.xs(529, axis=1, level=1)
    # The labels are a polynomial of the kernel's degree with 28 coefficients.
    assert last.loc["polynomial", "mse"] < 1e-6
    assert (last["mse"] < 0.5 * curves["mse"][30]).all()
    others = last.drop("polynomial")
    assert (others["mse"] < 0.5).all()
    assert ((others["selection_error"] / others["mse"]).between(1 / 3, 3)).all()


def test_many_random_features_do_as_well_as_their_kernel(tiny):
    wide = table(baselines=BASELINES.model_copy(update={"random_features": 5000}))
    errors = wide.pivot_table(index="sample_size", columns="method", values="mse")
    ratio = errors["random_features"] / errors["arc_cosine"]
    np.testing.assert_allclose(ratio, 1.0, rtol=0.15)
    few = tiny.pivot_table(index="sample_size", columns="method", values="mse")
    assert few["random_features"][529] > 1.15 * few["arc_cosine"][529]


def test_smaller_limit_changes_no_row_but_leaves_some_out(tiny):
    small = table(baselines=BASELINES.model_copy(update={"max_sample_size": 200}))
    expected = tiny[tiny["sample_size"] <= 200].reset_index(drop=True)
    pd.testing.assert_frame_equal(small, expected, rtol=1e-6)


def test_samples_are_those_of_the_spectral_method(tiny):
    teacher = draw_teacher(FAMILY, dimension=6, replicate=1, seed=3)
    train = Samples(teacher, "train", 1, 6, 1, seed=3)
    test = Samples(teacher, "test", 1, 6, 1, seed=3)
    inputs, labels = train.inputs(126), train.labels(126)
    truth = test.labels(2000)
    for method, kernel in baseline_kernels(1).items():
        fit = fit_kernel_ridge(inputs, labels, kernel=kernel, ridges=[1e-6, 1e-2])
        row = tiny[(tiny["method"] == method) & (tiny["sample_size"] == 126)].iloc[0]
        assert row["ridge"] == fit.ridges[0]
        assert row["selection_error"] == pytest.approx(fit.loo_errors[0] / labels.var(), rel=1e-6)
        error = np.mean((fit.predict(test.inputs(2000))[:, 0] - truth) ** 2) / truth.var()
        assert row["mse"] == pytest.approx(error, rel=1e-6)


def test_label_noise_is_in_the_training_labels_alone():
    noisy = table(FAMILY.model_copy(update={"noise": 3.0}))
    rows = noisy[(noisy["method"] == "polynomial") & (noisy["sample_size"] == 529)].iloc[0]
    # Of the labels' variance of about 1 + 9, leave-one-out cannot foretell the 9.
    assert rows["selection_error"] == pytest.approx(0.9, abs=0.15)
    # 28 coefficients from 529 samples: 9 * 28 / 529 is about 0.5 of the noiseless variance.
    assert 0.2 < rows["mse"] < 1.2


def test_quadratic_teachers_get_the_quartic_kernel():
    quadratic = FAMILY.model_copy(update={"degree": 2})
    rows = table(quadratic, dimension=4)
    # C(8, 4) = 70 coefficients, 4^3.5 = 128 samples.
    assert rows[rows["method"] == "polynomial"]["mse"].iloc[-1] < 1e-4


def test_equivalent_features_have_no_inputs():
    with pytest.raises(ConfigError, match=r"tiny: baselines need inputs x, .*'equivalent'"):
        table(FAMILY.model_copy(update={"features": "equivalent"}))


def test_grid_without_small_samples_is_a_configuration_error():
    late = FAMILY.sample_exponents.model_copy(update={"start": 3.0})
    with pytest.raises(ConfigError, match=r"baselines.max_sample_size 100 is below"):
        table(
            FAMILY.model_copy(update={"sample_exponents": late}),
            BASELINES.model_copy(update={"max_sample_size": 100}),
        )
