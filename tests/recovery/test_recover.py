"""The whole algorithm, its tables and its scripts."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table
from spectral_laws.config import Estimator, Evaluation, TeacherFamily
from spectral_laws.errors import ConfigError, NumericalError
from spectral_laws.recovery.hermite import hermite_features
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent
from spectral_laws.recovery.recover import SECOND_LAYERS, recover_features
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import STUDY_COLUMNS
from spectral_laws.recovery.tables import tabulate_recovery
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.recovery.theory import bulk_edges, tail_mse

ROOT = Path(__file__).resolve().parents[2]
FAMILY = TeacherFamily.model_validate_json(
    '{"degree": 1, "width_exponent": 0.5, "gamma": 0.4, "rows": "orthonormal",'
    ' "readout": "identity", "sample_exponents": {"start": 0.8, "stop": 2.6, "count": 5}}'
)
ESTIMATOR = Estimator(tolerance=1e-4, max_iterations=100, memory_mb=50)
EVALUATION = Evaluation(test_size=3000, readout_size=1000, readout_degree=3, ridge=1e-3)
SMALL = {"test_size": 3000, "readout_size": 1000}


@pytest.fixture(scope="module")
def linear():
    teacher = Teacher.draw(dimension=40, degree=1, n_directions=5, gamma=0.4, seed=1)
    return teacher, recover_features(teacher, [60, 1000, 20_000], seed=1, **SMALL)


def test_directions_are_recovered_with_enough_samples(linear):
    _, recoveries = linear
    assert recoveries[0].n_recovered == 0
    assert recoveries[-1].n_recovered == 5
    assert recoveries[-1].cos2.min() > 0.9
    for metric in ("feature_overlap", "n_outliers"):
        values = [getattr(recovery, metric) for recovery in recoveries]
        assert values == sorted(values)
    for name in SECOND_LAYERS:
        errors = [recovery.mse[name] for recovery in recoveries]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.1


def test_eigenvalues_approach_those_of_the_population(linear):
    teacher, recoveries = linear
    # E C has the eigenvalues sqrt(2) lambda_i exactly when the latents are Gaussian (degree 1).
    expected = np.sqrt(2) * teacher.weights
    np.testing.assert_allclose(recoveries[-1].eigenvalues, expected, atol=0.12)


def test_theory_columns(linear):
    teacher, recoveries = linear
    for recovery in recoveries:
        assert recovery.tail_mse == float(tail_mse(recovery.sample_size, 40, teacher.weights))
        assert recovery.residual <= 1e-4
        inside = [recovery.edges[0] <= v <= recovery.edges[1] for v in recovery.eigenvalues]
        assert recovery.n_outliers == inside.count(False)


# All eigenvalues outside the bulk, two, one.
@pytest.mark.parametrize(
    ("degree", "dimension", "n", "n_outliers"), [(2, 8, 3000, 3), (1, 30, 300, 2), (1, 30, 60, 1)]
)
def test_metrics_are_those_of_the_stored_directions(degree, dimension, n, n_outliers):
    """Everything again from its definition, with explicit matrices in float64."""
    teacher = Teacher.draw(
        dimension=dimension, degree=degree, n_directions=3, gamma=0.4, readout="tanh", seed=2
    )
    (recovery,) = recover_features(
        teacher, [n], seed=2, replicate=4, dtype="float64", tolerance=1e-9, **SMALL
    )
    draws = {
        name: Samples(teacher, name, degree, dimension, 4, seed=2)
        for name in ("train", "second", "test", "readout")
    }
    data = {
        name: (draw.inputs(size), teacher.labels(draw.inputs(size)))
        for (name, draw), size in zip(draws.items(), (n, n, 3000, 1000), strict=True)
    }
    U = recovery.directions
    latents = {name: hermite_features(x, degree) @ U.T for name, (x, _) in data.items()}
    layers = {}
    for name, source in (("same_sample", "train"), ("independent", "second")):
        h, y = latents[source], data[source][1]
        centred = y - y.mean()
        layers[name] = np.einsum("n,ni,nj->ij", centred, h, h) / n - np.eye(3) * centred.mean()
    low, high = bulk_edges(data["train"][1], teacher.feature_dimension / n)
    kept = (recovery.eigenvalues < low) | (recovery.eigenvalues > high)
    assert recovery.n_outliers == np.count_nonzero(kept) == n_outliers
    layers["outliers"] = layers["same_sample"] * np.outer(kept, kept)
    for name, layer in layers.items():
        fit = ScalarReadout.fit(second_latent(layer, latents["readout"]), data["readout"][1])
        predicted = fit.predict(second_latent(layer, latents["test"]))
        error = normalised_mse(predicted, data["test"][1])
        assert recovery.mse[name] == pytest.approx(error, rel=1e-6)
    np.testing.assert_allclose(recovery.cos2, ((U @ teacher.directions.T) ** 2).sum(0), atol=1e-9)
    assert recovery.edges == pytest.approx((low, high), rel=1e-9)


def test_warm_start_equals_cold_start():
    teacher = Teacher.draw(dimension=16, n_directions=3, gamma=0.4, seed=3)
    options = {"seed": 3, "dtype": "float64", "tolerance": 1e-8} | SMALL
    warm = recover_features(teacher, [50, 9900, 10_000], **options)[-1]
    (cold,) = recover_features(teacher, [10_000], **options)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.eigenvalues, cold.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(warm.cos2, cold.cos2, atol=1e-7)
    for name in SECOND_LAYERS:
        assert warm.mse[name] == pytest.approx(cold.mse[name], abs=1e-6)


def test_memory_budget_changes_nothing():
    teacher = Teacher.draw(dimension=9, n_directions=3, gamma=0.4, seed=3)
    kept, drawn_again = (
        recover_features(teacher, [9000], seed=3, memory_mb=memory_mb, **SMALL)[0]
        for memory_mb in (100, 0)
    )
    np.testing.assert_array_equal(kept.eigenvalues, drawn_again.eigenvalues)
    np.testing.assert_array_equal(kept.cos2, drawn_again.cos2)
    assert kept.mse == drawn_again.mse


def test_without_outliers_the_readout_is_the_mean():
    teacher = Teacher.draw(dimension=40, degree=1, n_directions=5, gamma=0.4, seed=1)
    recovery = recover_features(teacher, [20], seed=1, **SMALL)[0]
    test, readout = (
        Samples(teacher, name, 1, 40, 0, seed=1).labels(size)
        for name, size in (("test", 3000), ("readout", 1000))
    )
    assert recovery.n_outliers == 0
    expected = 1 + (test.mean() - readout.mean()) ** 2 / test.var()
    assert recovery.mse["outliers"] == pytest.approx(expected, rel=1e-12)
    assert recovery.mse["same_sample"] != pytest.approx(expected, rel=1e-6)


def test_fewer_samples_than_directions():
    teacher = Teacher.draw(dimension=40, degree=1, n_directions=5, gamma=0.4, seed=1)
    recovery = recover_features(teacher, [3], seed=1, **SMALL)[0]
    np.testing.assert_allclose(recovery.directions @ recovery.directions.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(recovery.eigenvalues[3:], 0, atol=1e-5)


@pytest.mark.parametrize("sizes", [[], [1, 10], [10, 10], [20, 10]])
def test_bad_grids(sizes):
    teacher = Teacher.draw(dimension=5, degree=1, n_directions=2, gamma=0.4)
    with pytest.raises(ConfigError, match="increasing and at least 2"):
        recover_features(teacher, sizes)


def test_no_convergence_names_the_case():
    teacher = Teacher.draw(dimension=30, n_directions=2, gamma=0.4)
    with pytest.raises(NumericalError, match=r"d = 30, n = 300: .* 2 iterations, residual"):
        recover_features(teacher, [300], max_iterations=2, **SMALL)


@pytest.fixture(scope="module")
def tables():
    return tabulate_recovery(
        "tiny", FAMILY, ESTIMATOR, EVALUATION, dimension=16, replicate=2, seed=9
    )


def test_table_columns(tables):
    assert list(tables.metrics.columns) == [
        *STUDY_COLUMNS, "sample_size", "second_layer", "mse", "feature_overlap", "n_recovered",
        "n_outliers", "tail_mse", "edge_low", "edge_high", "iterations", "residual",
    ]  # fmt: skip
    assert list(tables.directions.columns) == [
        *STUDY_COLUMNS, "sample_size", "direction", "weight", "cos2", "matched_overlap",
        "eigenvalue", "threshold",
    ]  # fmt: skip
    assert list(tables.thresholds.columns) == [
        *STUDY_COLUMNS, "direction", "weight", "threshold", "half_recovery", "censored",
    ]  # fmt: skip
    sizes = FAMILY.sample_exponents.sample_sizes(16)
    assert len(tables.metrics) == 3 * len(sizes)
    assert len(tables.directions) == 4 * len(sizes)
    assert tables.thresholds["direction"].tolist() == [1, 2, 3, 4]
    assert set(tables.metrics["seed"]) == {2}


def test_directions_table_holds_the_recoveries(tables):
    teacher = Teacher.draw(dimension=16, degree=1, n_directions=4, gamma=0.4, seed=9, replicate=2)
    sizes = FAMILY.sample_exponents.sample_sizes(16)
    recoveries = recover_features(teacher, sizes, seed=9, replicate=2, readout_degree=3, **SMALL)
    for name in ("cos2", "matched_overlap"):
        expected = np.concatenate([getattr(recovery, name) for recovery in recoveries])
        np.testing.assert_array_equal(tables.directions[name], expected)
    eigenvalues = np.concatenate([recovery.eigenvalues for recovery in recoveries])
    np.testing.assert_array_equal(tables.directions["eigenvalue"], eigenvalues)
    np.testing.assert_array_equal(tables.directions["weight"], np.tile(teacher.weights, len(sizes)))


def test_thresholds_table_agrees_with_the_directions(tables):
    for row in tables.thresholds.itertuples():
        curve = tables.directions[tables.directions["direction"] == row.direction]
        crossed = curve["cos2"] >= 0.5
        assert row.threshold == pytest.approx(16 / row.weight**2)
        if row.censored == "no":
            first = int(np.argmax(crossed))
            sizes = curve["sample_size"].tolist()
            assert sizes[first - 1] < row.half_recovery <= sizes[first]
        else:
            assert np.isnan(row.half_recovery)
            assert crossed.iloc[0] if row.censored == "below" else not crossed.any()
    assert (tables.thresholds["censored"] == "no").any()
    assert tables.thresholds["half_recovery"].dtype == np.float64


def test_tables_are_deterministic(tables):
    again = tabulate_recovery(
        "tiny", FAMILY, ESTIMATOR, EVALUATION, dimension=16, replicate=2, seed=9
    )
    for first, second in zip(tables, again, strict=True):
        pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_more_directions_than_features_is_a_configuration_error():
    wide = FAMILY.model_copy(update={"width_exponent": 1.5})
    with pytest.raises(ConfigError, match="only D = 16 features"):
        tabulate_recovery("tiny", wide, ESTIMATOR, EVALUATION, dimension=16, replicate=0, seed=9)


def run_script(name, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "workflow" / "scripts" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def options(**values):
    return [part for key, value in values.items() for part in ("--" + key.replace("_", "-"), value)]


def test_recover_script_writes_the_tables(tmp_path, tables):
    outputs = {name: tmp_path / f"{name}.parquet" for name in tables._fields}
    result = run_script(
        "recover_features.py",
        *options(
            study_name="tiny",
            study=FAMILY.model_dump_json(),
            estimator=ESTIMATOR.model_dump_json(),
            evaluation=EVALUATION.model_dump_json(),
            dimension=16,
            replicate=2,
            seed=9,
            device="cpu",
            **outputs,
        ),
    )
    assert result.returncode == 0, result.stderr
    for name, path in outputs.items():
        expected = getattr(tables, name)
        # Another process may use another number of threads: equal up to float32 rounding.
        pd.testing.assert_frame_equal(read_table(path), expected, rtol=1e-3, atol=1e-3)
    provenance = read_provenance(outputs["metrics"])
    assert provenance["seed"] == 9
    assert provenance["parameters"]["estimator"] == ESTIMATOR.model_dump()
    assert provenance["parameters"]["dimension"] == 16


def test_kernel_and_spectrum_scripts(tmp_path):
    kernel, spectrum = tmp_path / "kernel.parquet", tmp_path / "spectrum.parquet"
    study = FAMILY.model_dump_json()
    result = run_script(
        "fit_kernel_ridge.py",
        *options(
            study_name="tiny",
            study=study,
            evaluation=EVALUATION.model_dump_json(),
            kernel='{"max_sample_size": 50, "ridges": [0.1]}',
            dimension=16,
            replicate=0,
            seed=9,
            output=kernel,
        ),
    )
    assert result.returncode == 0, result.stderr
    assert read_table(kernel)["sample_size"].tolist() == [9, 32]
    point = {"study": "tiny", "dimension": 16, "sample_exponent": 2.0}
    result = run_script(
        "compute_spectrum.py",
        *options(study=study, point=json.dumps(point), seed=9, output=spectrum),
    )
    assert result.returncode == 0, result.stderr
    assert len(read_table(spectrum)) == 16
    assert read_provenance(spectrum)["parameters"]["point"] == point


def test_scripts_report_mistakes_in_one_line(tmp_path):
    result = run_script(
        "compute_spectrum.py",
        *options(
            study=FAMILY.model_dump_json(),
            point='{"study": "tiny", "dimension": 16, "sample_exponent": 0.1}',
            output=tmp_path / "spectrum.parquet",
        ),
    )
    assert result.returncode == 1
    assert result.stderr.strip() == ("error: spectrum.sample_exponent 0.1 gives n = 1 < 2")
    assert not list(tmp_path.iterdir())
