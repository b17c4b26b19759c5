"""The scripts as they are run: in processes of their own, twice, to the same bytes."""

import json
import os
import subprocess
import sys
import time

import pytest

from spectral_laws.artifacts import write_table
from spectral_laws.provenance import Provenance

FIGURES = {
    "recovery_mse": ("metrics",),
    "recovery_gamma": ("metrics",),
    "recovery_directions": ("directions", "thresholds"),
    "recovery_readouts": ("metrics", "thresholds"),
    "recovery_spectrum": ("spectrum",),
    "recovery_sharp_theory": ("directions", "thresholds"),
    "recovery_finite_size": ("population", "directions"),
    "recovery_depth": ("metrics", "directions", "baselines"),
    "recovery_perturbation": ("perturbation",),
    "recovery_error_exponents": ("error_exponents", "metrics"),
    "curvature_power_law": ("spectra", "exponents", "experiments"),
    "curvature_triangle": ("exponents", "experiments"),
    "curvature_alpha_by_layer": ("exponents", "experiments"),
    "curvature_ladder": ("ladder", "exponents", "experiments"),
    "curvature_decomposition": ("decomposition", "experiments"),
    "curvature_independence": ("independence", "experiments"),
    "curvature_mechanisms": ("experiments", "spectra"),
    "curvature_trajectory": ("exponents",),
    "curvature_participation": ("exponents", "experiments"),
    "curvature_rank_models": ("exponents", "spectra", "experiments"),
    "curvature_factors": ("spectra", "factor_models", "experiments"),
    "curvature_controls": ("finite_differences", "eigenvalues"),
    "curvature_windows": ("windows", "experiments"),
    "curvature_weights": ("weights", "exponents", "experiments"),
    "curvature_audit": ("audit",),
    "optimizers_race": ("race", "race_times"),
    "optimizers_gains": ("race", "tuning", "tuning_times"),
    "optimizers_responses": ("responses",),
    "optimizers_layer_rates": ("layer_rates",),
    "claims": ("claims",),
}

STUDIES = (
    "quadratic", "quadratic_tanh", "gamma_02", "gamma_10", "equivalent", "equivalent_tanh",
    "steep", "smoothing", "depth_linear", "depth_quadratic",
)  # fmt: skip
NO_FIT = ("fc", "conv1", "layer3.0.downsample.0", "layer1.0.conv1")  # of a set there is an order
LEADING = ("curvature_power_law", "curvature_rank_models", "curvature_factors")
BOOTSTRAPPED = ("recovery_finite_size", "recovery_depth", "recovery_error_exponents")


@pytest.fixture(scope="module")
def files(
    tmp_path_factory,
    make_recovery,
    make_baselines,
    make_perturbation,
    make_population,
    make_error_exponents,
    make_spectrum,
    make_curvature,
    make_optimizers,
    audit_table,
    claims_table,
):
    folder = tmp_path_factory.mktemp("tables")
    names = ("metrics", "directions", "thresholds")
    tables = dict(zip(names, make_recovery(STUDIES, 3), strict=True))
    tables["baselines"] = make_baselines(seeds=3)
    tables["perturbation"] = make_perturbation(2)
    tables["population"] = make_population(3)
    tables["error_exponents"] = make_error_exponents()
    tables["spectrum"] = make_spectrum()
    tables |= make_curvature(seeds=2, no_fit=NO_FIT, experiments=("classes", "task"))
    tables |= make_optimizers(seeds=2)
    tables["audit"] = audit_table
    tables["claims"] = claims_table
    paths = {}
    for name, table in tables.items():
        paths[name] = folder / f"{name}.parquet"
        nullable = tuple(name for name in table if table[name].isna().any())
        write_table(table, paths[name], Provenance(parameters={}), nullable=nullable)
    return paths


RUN_ALL = """
import json, runpy, sys
for argv in json.loads(sys.stdin.read()):
    sys.argv = argv
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def path_of(root, name):
    return str(root / "workflow" / "scripts" / f"plot_{name}.py")


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=400, **options
    )


def options(files, name, folder):
    inputs = [
        part
        for table in FIGURES[name]
        for part in (f"--{table.replace('_', '-')}", str(files[table]))
    ]
    if name in BOOTSTRAPPED:
        inputs += ["--resamples", "20"]
    if name in LEADING:
        inputs += ["--top-k", "20"]
    if name == "recovery_depth":
        inputs += ["--spectral-quadratic", "steep"]
    outputs = ["--pdf", str(folder / f"{name}.pdf"), "--png", str(folder / f"{name}.png")]
    return inputs + outputs


def test_two_processes_write_the_same_bytes(root, files, tmp_path):
    # The second process draws every third figure, in reverse order: no figure may leave a trace on
    # the next. All figures of two whole runs are compared by workflow/compare.py.
    for run, seed, names in (("first", "1", [*FIGURES]), ("second", "2", [*FIGURES][::-3])):
        jobs = [[path_of(root, name), *options(files, name, tmp_path / run)] for name in names]
        result = python(
            "-c", RUN_ALL, input=json.dumps(jobs), env=os.environ | {"PYTHONHASHSEED": seed}
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        time.sleep(1.1)  # a date in whole seconds would differ
    for name in names:
        for suffix in ("pdf", "png"):
            first, second = (tmp_path / run / f"{name}.{suffix}" for run in ("first", "second"))
            assert first.read_bytes() == second.read_bytes(), first.name
            assert first.stat().st_size > 5000


def test_missing_table_is_one_line(root, files, tmp_path):
    files = files | {"exponents": tmp_path / "none.parquet"}
    result = python(
        path_of(root, "curvature_triangle"), *options(files, "curvature_triangle", tmp_path)
    )
    assert result.returncode == 1
    assert result.stderr == f"error: {tmp_path / 'none.parquet'}: no such table\n"


def test_unknown_study_is_one_line(root, files, tmp_path):
    arguments = [*options(files, "recovery_directions", tmp_path), "--study", "cubic"]
    result = python(path_of(root, "recovery_directions"), *arguments)
    assert result.returncode == 1
    assert "no study 'cubic'" in result.stderr
    assert not list(tmp_path.iterdir())
