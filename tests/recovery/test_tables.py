"""Tables of a study's teachers, and the scripts that write them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table
from spectral_laws.errors import ConfigError
from spectral_laws.recovery.recover import _DENSE_SHARE as DENSE_SHARE
from spectral_laws.recovery.recover import _SMALL_SHARE as SMALL_SHARE
from spectral_laws.recovery.recover import recover_equivalent, recover_features
from spectral_laws.recovery.study import draw_teacher
from spectral_laws.recovery.tables import tabulate_recovery
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.rng import torch_seed
from spectral_laws.settings.recovery import Estimator, Evaluation, SampleExponents, TeacherFamily
from spectral_laws.tables.schemas import load_schema

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FAMILY = TeacherFamily.model_validate_json(
    '{"degree": 1, "width_exponent": 0.5, "gamma": 0.4, "noise": 0.1,'
    ' "sample_exponents": {"start": 0.8, "stop": 2.6, "count": 5}}'
)
EQUIVALENT = TeacherFamily.model_validate_json(
    '{"features": "equivalent", "degree": 2, "width": 4, "gamma": 0.4, "readout": "tanh",'
    ' "noise": 0.1, "sample_exponents": {"start": 1.5, "stop": 3.6, "count": 5}}'
)
FAMILIES = {"hermite": FAMILY, "equivalent": EQUIVALENT}
ESTIMATOR = Estimator(tolerance=1e-4, equivalent_tolerance=1e-3, max_iterations=100, memory_mb=50)
EVALUATION = Evaluation(test_size=3000, readout_size=1000, readout_degree=3, ridge=1e-2)
SMALL = {"test_size": 3000, "readout_size": 1000, "readout_degree": 3, "ridge": 1e-2}


def make(family, replicates, dimension=16, **options):
    where = {"dimension": dimension, "replicates": replicates, "seed": 9} | options
    return tabulate_recovery("tiny", family, ESTIMATOR, EVALUATION, **where)


@pytest.fixture(scope="module", autouse=True)
def small_sizes_stand_for_large():
    """As at large D: equivalent features in law, C never formed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spectral_laws.recovery.recover._SMALL_SHARE", 1)
        patch.setattr("spectral_laws.recovery.recover._DENSE_SHARE", 0)
        yield


@pytest.fixture(scope="module", params=["hermite", "equivalent"])
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def tables(family):
    return make(family, [1, 2])


def test_columns(tables, family):
    for name, table in tables._asdict().items():
        load_schema(f"recovery/{name}").check(table)
    sizes = family.sample_exponents.sample_sizes(16)
    assert len(tables.metrics) == 2 * 3 * len(sizes)
    assert len(tables.directions) == 2 * 4 * len(sizes)
    assert tables.thresholds["direction"].tolist() == [1, 2, 3, 4] * 2
    for table in tables:
        assert table["seed"].unique().tolist() == [1, 2]
        head = table[list(table.columns)[:9]].drop_duplicates().iloc[0].to_dict()
        assert head == {
            "study": "tiny",
            "features": family.features,
            "degree": family.degree,
            "dimension": 16,
            "feature_dimension": 16 if family.degree == 1 else 136,
            "n_directions": 4,
            "gamma": 0.4,
            "readout": family.readout,
            "noise": 0.1,
        }


def test_only_half_recovery_may_be_missing(tables):
    missing = ["half_recovery", "predicted_half_recovery"]
    for table in tables:
        numbers = table.select_dtypes("number").drop(columns=missing, errors="ignore")
        assert np.isfinite(numbers.to_numpy()).all()
    for name in missing:
        assert tables.thresholds[name].dtype == np.float64


def test_tables_hold_the_recoveries(tables, family):
    sizes = family.sample_exponents.sample_sizes(16)
    for replicate in (1, 2):
        teacher = draw_teacher(family, dimension=16, replicate=replicate, seed=9)
        if family.features == "hermite":
            recoveries = recover_features(teacher, sizes, seed=9, replicate=replicate, **SMALL)
        else:
            recoveries = recover_equivalent(
                teacher.weights,  # those of the teacher with true features
                sizes,
                feature_dimension=136,
                readout="tanh",
                noise=0.1,
                seed=9,
                stream=(2, 16, replicate),
                **SMALL,
            )
        directions = tables.directions[tables.directions["seed"] == replicate]
        estimates = [recovery.estimate for recovery in recoveries]
        for name, values in {
            "cos2": [recovery.cos2 for recovery in recoveries],
            "predicted_cos2": [recovery.predicted_cos2 for recovery in recoveries],
            "matched_overlap": [estimate.matched_overlap for estimate in estimates],
            "eigenvalue": [estimate.eigenvalues for estimate in estimates],
            "localisation": [estimate.localisation for estimate in estimates],
            "weight": [teacher.weights] * len(sizes),
        }.items():
            np.testing.assert_array_equal(directions[name], np.concatenate(values))
        metrics = tables.metrics[tables.metrics["seed"] == replicate]
        for recovery in recoveries:
            rows = metrics[metrics["sample_size"] == recovery.sample_size].set_index("second_layer")
            assert rows["mse"].to_dict() == dict(recovery.mse)
            assert rows["predicted_mse"].to_dict() == dict(recovery.predicted_mse)
            row = rows.iloc[0]
            assert row["n_outliers"] == recovery.outside.sum()
            assert row["n_spurious"] == recovery.spurious.sum()
            assert row["n_recovered"] == recovery.n_recovered
            assert row["tail_mse"] == recovery.tail_mse
            assert row["feature_overlap"] == recovery.feature_overlap
            assert row["predicted_overlap"] == recovery.predicted_cos2.mean()
            assert (row["edge_low"], row["edge_high"]) == recovery.prediction.edges


def test_thresholds_table_agrees_with_the_directions(tables, family):
    D = family.feature_dimension(16)
    for row in tables.thresholds.itertuples():
        curve = tables.directions[
            (tables.directions["direction"] == row.direction)
            & (tables.directions["seed"] == row.seed)
        ]
        sizes = curve["sample_size"].tolist()
        assert row.threshold == pytest.approx(D / row.weight**2)
        crossed = curve["cos2"] >= 0.5
        if row.censored == "no":
            first = int(np.argmax(crossed))
            assert sizes[first - 1] < row.half_recovery <= sizes[first]
        else:
            assert np.isnan(row.half_recovery)
            assert crossed.iloc[0] if row.censored == "below" else not crossed.any()
        predicted = curve["predicted_cos2"] >= 0.5
        if np.isnan(row.predicted_half_recovery):
            assert predicted.iloc[0] or not predicted.any()
        else:
            first = int(np.argmax(predicted))
            assert sizes[first - 1] < row.predicted_half_recovery <= sizes[first]
    assert (tables.thresholds["censored"] == "no").any()
    assert tables.thresholds["predicted_half_recovery"].notna().any()


def test_a_batch_is_its_single_runs(tables, family):
    parts = [make(family, [replicate]) for replicate in (1, 2)]
    for whole, *singles in zip(tables, *parts, strict=True):
        together = pd.concat(singles, ignore_index=True)
        pd.testing.assert_frame_equal(whole, together, check_exact=True)


def test_settings_of_the_estimator_are_used():
    tight, rough = (
        ESTIMATOR.model_copy(update={"tolerance": value, "equivalent_tolerance": value})
        for value in (1e-5, 1e-1)
    )
    for family in FAMILIES.values():
        grid = {"start": 2.4, "stop": 2.5, "count": 1}
        one = family.model_copy(update={"sample_exponents": SampleExponents(**grid)})
        fine, loose = (
            tabulate_recovery(
                "tiny", one, estimator, EVALUATION, dimension=60, replicates=[0], seed=9
            ).metrics
            for estimator in (tight, rough)
        )
        assert fine["residual"].max() <= 1e-5 < loose["residual"].max() <= 1e-1
        assert fine["iterations"].max() > loose["iterations"].max()


def test_many_directions_in_few_features_are_recovered_from_drawn_inputs(monkeypatch):
    monkeypatch.setattr("spectral_laws.recovery.recover._SMALL_SHARE", SMALL_SHARE)
    found = make(EQUIVALENT, [1])
    weights = draw_teacher(EQUIVALENT, dimension=16, replicate=1, seed=9).weights
    teacher = Teacher(np.eye(4, 136), weights, 136, 1, "tanh", noise=0.1)
    sizes = EQUIVALENT.sample_exponents.sample_sizes(16)
    seed = torch_seed(9, "equivalent", 2, 16, 1)
    recoveries = recover_features(teacher, sizes, seed=seed, **SMALL)
    expected = np.concatenate([recovery.cos2 for recovery in recoveries])
    np.testing.assert_allclose(found.directions["cos2"], expected, atol=2e-3)
    # Overlaps inside the bulk, about d1 / D, are not set to 0.
    assert found.directions["cos2"].min() > 0
    assert found.directions["feature_dimension"].unique().tolist() == [136]


def test_equivalent_families_share_weights_across_readouts():
    weights = [
        make(EQUIVALENT.model_copy(update={"readout": readout}), [0]).thresholds["weight"].tolist()
        for readout in ("identity", "relu")
    ]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("features", ["hermite", "equivalent"])
def test_more_directions_than_features_is_a_configuration_error(features):
    wide = FAMILY.model_copy(update={"width_exponent": 1.5, "features": features})
    with pytest.raises(ConfigError, match="only D = 16 features"):
        make(wide, [0])


def test_teacher_of_a_family_is_the_drawn_one():
    teacher = Teacher.draw(
        dimension=16, degree=1, n_directions=4, gamma=0.4, noise=0.1, seed=9, replicate=2
    )
    found = draw_teacher(FAMILY, dimension=16, replicate=2, seed=9)
    np.testing.assert_array_equal(found.directions, teacher.directions)
    assert (found.noise, found.readout) == (0.1, "identity")


# Scripts


def test_recover_script_writes_a_batch(tmp_path, monkeypatch, run_script):
    # As the pipeline runs it, without this module's patches.
    monkeypatch.setattr("spectral_laws.recovery.recover._SMALL_SHARE", SMALL_SHARE)
    monkeypatch.setattr("spectral_laws.recovery.recover._DENSE_SHARE", DENSE_SHARE)
    tables = make(EQUIVALENT, [1, 2])
    outputs = {name: tmp_path / f"{name}.parquet" for name in tables._fields}
    result = run_script(
        "recover_features",
        study_name="tiny",
        study=EQUIVALENT.model_dump_json(),
        estimator=ESTIMATOR.model_dump_json(),
        evaluation=EVALUATION.model_dump_json(),
        dimension=16,
        first=1,
        last=2,
        seed=9,
        device="cpu",
        **outputs,
    )
    assert result.returncode == 0, result.stderr
    for name, path in outputs.items():
        expected = getattr(tables, name)
        pd.testing.assert_frame_equal(read_table(path), expected)
    provenance = read_provenance(outputs["metrics"])
    assert provenance["seed"] == 9
    assert provenance["parameters"]["estimator"] == ESTIMATOR.model_dump()
    assert [provenance["parameters"][key] for key in ("dimension", "first", "last")] == [16, 1, 2]


def test_spectrum_script(tmp_path, run_script):
    spectrum = tmp_path / "spectrum.parquet"
    point = {"study": "tiny", "dimension": 16, "sample_exponent": 2.0}
    options = {"study": FAMILY.model_dump_json(), "point": point, "seed": 9, "output": spectrum}
    result = run_script("compute_spectrum", **options)
    assert result.returncode == 0, result.stderr
    assert len(read_table(spectrum)) == 16
    assert read_provenance(spectrum)["parameters"]["point"] == point


def test_scripts_report_mistakes_in_one_line(tmp_path, run_script):
    result = run_script(
        "compute_spectrum",
        study=FAMILY.model_dump_json(),
        point={"study": "tiny", "dimension": 16, "sample_exponent": 0.1},
        output=tmp_path / "spectrum.parquet",
    )
    assert result.returncode == 1
    assert result.stderr.strip() == ("error: spectrum.sample_exponent 0.1 gives n = 1 < 2")
    assert not list(tmp_path.iterdir())
