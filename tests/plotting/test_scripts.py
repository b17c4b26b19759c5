"""The scripts as they are run: in processes of their own, twice, to the same bytes."""

import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest

from spectral_laws.artifacts import read_table
from spectral_laws.errors import DataError
from spectral_laws.figure_registry import load_figures
from spectral_laws.plotting import draw_figure

pytestmark = pytest.mark.slow

STUDIES = (
    "quadratic", "quadratic_tanh", "gamma_02", "gamma_10", "equivalent", "equivalent_tanh",
    "steep", "smoothing", "depth_linear", "depth_quadratic",
)  # fmt: skip
NO_FIT = ("fc", "conv1", "layer3.0.downsample.0", "layer1.0.conv1")  # of a set there is an order
FEW = {"top_k": 20, "resamples": 20, "confidence": 0.95}


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
    tables["claim_measurements"] = claims_table
    paths = {}
    for name, table in tables.items():
        paths[name] = folder / f"{name}.parquet"
        table.to_parquet(paths[name])
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


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=400, **options
    )


def command(root, files, name, folder, **parameters):
    figure = load_figures()[name]
    parameters = {key: FEW[key] for key in figure.params} | parameters
    if name == "recovery_depth":
        parameters["spectral_quadratic"] = "steep"
    return [
        str(root / "workflow" / "scripts" / "draw_figure.py"),
        *(str(files[table.split("/")[-1]]) for table in figure.tables),
        *("--figure", name, "--parameters", json.dumps(parameters)),
        *("--pdf", str(folder / f"{name}.pdf"), "--png", str(folder / f"{name}.png")),
    ]


def test_two_processes_write_the_same_bytes(root, files, tmp_path):
    # Every sixth figure; the second process draws them in reverse order: no figure may leave a
    # trace on the next. All figures of two whole runs are compared by workflow/compare.py.
    sixth = [*load_figures()][5::6]
    for run, seed, names in (("first", "1", sixth), ("second", "2", sixth[::-1])):
        jobs = [command(root, files, name, tmp_path / run) for name in names]
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


SURROUNDINGS = {
    "plain": ("", None),
    "notebook": ("module://matplotlib_inline.backend_inline", b"lines.linewidth: wide\nno key\n"),
    "inline": ("inline", b"\xff\xfe not UTF-8"),
    "nonsense": ("no-such-backend", "unreadable"),
}
"""MPLBACKEND, and a matplotlibrc in the folder."""


def test_neither_a_backend_nor_a_matplotlibrc_matters(root, files, tmp_path):
    drawn = set()
    for case, (backend, settings) in SURROUNDINGS.items():
        folder = tmp_path / case
        folder.mkdir()
        if settings == "unreadable":  # a socket is so for root as well
            socket.socket(socket.AF_UNIX).bind(os.path.relpath(folder / "matplotlibrc"))
        elif settings is not None:
            (folder / "matplotlibrc").write_bytes(settings)
        arguments = command(root, files, "optimizers_responses", folder)
        environment = os.environ | {"MPLBACKEND": backend}
        result = python(*arguments, cwd=folder, env=environment)
        assert (result.returncode, result.stderr) == (0, ""), case
        pdf, png = (folder / f"optimizers_responses.{suffix}" for suffix in ("pdf", "png"))
        drawn.add((pdf.read_bytes(), png.read_bytes()))
    assert len(drawn) == 1


def test_missing_table_is_one_line(root, files, tmp_path):
    files = files | {"exponents": tmp_path / "none.parquet"}
    result = python(*command(root, files, "curvature_triangle", tmp_path))
    assert result.returncode == 1
    assert result.stderr == f"error: {tmp_path / 'none.parquet'}: no such table\n"


def test_wrong_arguments_are_one_line(files):
    tables = {name: read_table(files[name]) for name in ("directions", "thresholds")}
    for change, message in (
        ({"study": "cubic"}, "directions table: no study 'cubic', there are quadratic, "),
        ({"degree": 2}, "figure recovery_directions: got an unexpected keyword argument 'degree'"),
    ):
        with pytest.raises(DataError, match=re.escape(message)):
            draw_figure("recovery_directions", **tables, **change)
    with pytest.raises(DataError, match=r"recovery_directions: missing .* 'thresholds'"):
        draw_figure("recovery_directions", directions=tables["directions"])
    with pytest.raises(DataError, match="there is no figure 'curvature_heads'"):
        draw_figure("curvature_heads")


def test_two_tables_of_one_name_are_refused(root, files, tmp_path, run_script):
    other = tmp_path / files["audit"].name
    other.write_bytes(files["audit"].read_bytes())
    arguments = {"figure": "curvature_audit", "pdf": tmp_path / "a.pdf", "png": tmp_path / "a.png"}
    result = run_script("draw_figure", files["audit"], other, **arguments)
    assert result.returncode == 1
    assert "error: two tables of one name among" in result.stderr
