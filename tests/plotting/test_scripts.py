"""The scripts as they are run: in processes of their own, twice, to the same bytes."""

import json
import os
import subprocess
import sys
import time

import pytest

from spectral_laws.artifacts import Provenance, write_table

FIGURES = {
    "recovery_mse": ("metrics", "kernel"),
    "recovery_directions": ("directions", "thresholds"),
    "recovery_spectrum": ("spectrum",),
    "curvature_power_law": ("spectra", "exponents"),
    "curvature_triangle": ("exponents",),
    "curvature_alpha_by_layer": ("exponents",),
    "claims": ("claims",),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory, make_recovery, make_spectrum, make_curvature, claims_table):
    folder = tmp_path_factory.mktemp("tables")
    names = ("metrics", "directions", "thresholds", "kernel")
    tables = dict(zip(names, make_recovery(("quadratic_tanh", "linear"), 2), strict=True))
    tables["spectrum"] = make_spectrum()
    tables["spectra"], tables["exponents"] = make_curvature(no_fit=("fc",))
    paths = {}
    for name, table in tables.items():
        paths[name] = folder / f"{name}.parquet"
        nullable = tuple(name for name in table if table[name].isna().any())
        write_table(table, paths[name], Provenance(parameters={}), nullable=nullable)
    paths["claims"] = folder / "claims.csv"
    claims_table.to_csv(paths["claims"], index=False)
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
        [sys.executable, *arguments], capture_output=True, text=True, timeout=200, **options
    )


def options(files, name, folder):
    inputs = [part for table in FIGURES[name] for part in (f"--{table}", str(files[table]))]
    outputs = ["--pdf", str(folder / f"{name}.pdf"), "--png", str(folder / f"{name}.png")]
    return inputs + outputs


def test_two_processes_write_the_same_bytes(root, files, tmp_path):
    # The second process draws in reverse order: no figure may leave a trace on the next.
    for run, seed, names in (("first", "1", list(FIGURES)), ("second", "2", [*FIGURES][::-1])):
        jobs = [[path_of(root, name), *options(files, name, tmp_path / run)] for name in names]
        result = python(
            "-c", RUN_ALL, input=json.dumps(jobs), env=os.environ | {"PYTHONHASHSEED": seed}
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        time.sleep(1.1)  # a date in whole seconds would differ
    for name in FIGURES:
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
