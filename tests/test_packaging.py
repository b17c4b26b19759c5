"""What a user installs: the wheel, the extras, types, and the same packages from conda."""

import ast
import json
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "spectral_laws"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

# What cannot be imported without `pipeline`, besides plotting, and the package it misses: the
# scripts' options, and the fits of one rule that have no public name.
NEED_PIPELINE = {
    "spectral_laws.cli": "typer",
    "spectral_laws.curvature.fits.weight_tails": "powerlaw",
    "spectral_laws.plotting.curvature.participation": "seaborn",
}
CONDA_NAMES = {
    "build": "python-build",
    "matplotlib": "matplotlib-base",
    "seaborn": "seaborn-base",
    "snakemake": "snakemake-minimal",
    "torch": "pytorch",
}


def run(*command, cwd):
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    run(*command, cwd=folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """An environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    options = ["--quiet", "--no-deps", "--no-index", "--target", paths["purelib"]]
    run(sys.executable, "-m", "pip", "install", *options, built[1], cwd=folder)
    return Path(paths["scripts"]) / "python"


def test_the_wheel_holds_the_library_alone(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
        (record,) = (name.split("/")[0] for name in names if name.endswith("/METADATA"))
        licence = wheel.read(f"{record}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert {name.split("/")[0] for name in names} == {"spectral_laws", record}
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    expected = {str(path.relative_to(PACKAGE.parent)) for path in files}
    assert {name for name in names if name.startswith("spectral_laws/")} == expected
    claims = {"spectral_laws/claims/registry.yaml", "spectral_laws/claims/render.html.j2"}
    assert {"spectral_laws/py.typed", *claims} < expected
    assert sum(name.endswith(".pyi") for name in expected) >= 9


def test_the_source_distribution_can_run_the_tests(built):
    with tarfile.open(built[0]) as sdist:
        names = {"/".join(name.split("/")[1:]) for name in sdist.getnames()}
    for path in ("pyproject.toml", "constraints.txt", "Makefile", "Snakefile", "environment.yml"):
        assert path in names
    for folder in ("src", "tests", "examples", "workflow", "config", "profiles", "docs"):
        assert any(name.startswith(f"{folder}/") for name in names), folder
    for folder in (".venv", ".git", ".snakemake", "scratch", "logs", "data"):
        assert not any(name.startswith(f"{folder}/") for name in names), folder
    for folder in ("results", "figures"):
        assert {name for name in names if name.startswith(f"{folder}/")} == {f"{folder}/.gitkeep"}


def test_every_requirement_is_in_the_wheel_under_its_extra(built):
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        lines = wheel.read(name).decode().splitlines()
    found = {
        Requirement(line.removeprefix("Requires-Dist: "))
        for line in lines
        if line.startswith("Requires-Dist: ")
    }
    expected = {Requirement(text) for text in PROJECT["dependencies"]}
    for extra, texts in EXTRAS.items():
        expected |= {Requirement(f"{text}; extra == '{extra}'") for text in texts}
    assert found == expected
    assert f"Requires-Python: {PROJECT['requires-python']}" in lines
    assert {line for line in lines if line.startswith("Provides-Extra: ")} == {
        f"Provides-Extra: {extra}" for extra in EXTRAS
    }


# Runs in the environment of the wheel, and sees the packages of one more folder at each step.
LOOK = """
import importlib, json, pkgutil, pydoc, sys

sys.path.append(sys.argv[1])
import torch
import spectral_laws
from spectral_laws.claims import load_claims
from spectral_laws.curvature import measure_directional_curvature
from spectral_laws.fitting import fit_loglog

(layer,) = measure_directional_curvature(torch.nn.Linear(2, 2), torch.eye(2), torch.arange(2))
fit = fit_loglog([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
called = [len(load_claims()), len(layer.singular_values), fit.slope]

modules = [found.name for found in pkgutil.walk_packages(spectral_laws.__path__, "spectral_laws.")]
missing = []
for folder in sys.argv[1:]:
    sys.path.append(folder)
    importlib.invalidate_caches()
    missing.append({})
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing[-1][name] = error.name
            continue
        pydoc.render_doc(module)  # as `help` does: looks at everything that is offered
        exec(f"from {name} import *", {})
files = [m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] == "spectral_laws"]
print(json.dumps({"called": called, "files": files, "missing": missing}))
"""


def brought_by(texts):
    """Names of the distributions that requirements bring, directly or not."""
    found, left = set(), [Requirement(text) for text in texts]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found.add(name)
            with suppress(PackageNotFoundError):  # conda has torch's in other pieces
                needed = [Requirement(text) for text in distribution(name).requires or ()]
                asked = [{"extra": extra} for extra in requirement.extras or [""]]
                left += [r for r in needed if not r.marker or any(map(r.marker.evaluate, asked))]
    return found


@pytest.fixture(scope="module")
def seen(installed, tmp_path_factory):
    """What LOOK sees with the library's requirements alone, and with `pipeline`."""
    folders = []
    for texts in (PROJECT["dependencies"], EXTRAS["pipeline"]):
        folders.append(tmp_path_factory.mktemp("packages"))
        for name in brought_by(texts):
            with suppress(PackageNotFoundError):
                found = distribution(name)
                for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
                    (folders[-1] / top).symlink_to(found.locate_file(top))
    assert (folders[0] / "torch").is_dir()
    for package in ("matplotlib", "PIL", "powerlaw", "pytest", "requests", "spectral_laws"):
        assert not (folders[0] / package).exists()
    return json.loads(run(installed, "-I", "-c", LOOK, *folders, cwd=folders[0]))


def test_the_installed_library_computes(installed, seen):
    assert len(seen["files"]) > 100
    for file in seen["files"]:
        assert Path(file).is_relative_to(installed.parent.parent), file
    claims, directions, slope = seen["called"]
    registry = yaml.safe_load((PACKAGE / "claims" / "registry.yaml").read_text())
    assert claims == len(registry["claims"])
    assert directions == 1  # the two rows of the gradient are opposite
    assert slope == pytest.approx(1.0)


def test_the_library_alone_imports_without_the_pipelines_packages(seen):
    # Every module that is there was imported whole (`import *`) and shown (`help`).
    alone, with_pipeline = seen["missing"]
    plotting = {name: "matplotlib" for name in alone if name.startswith("spectral_laws.plotting.")}
    assert len(plotting) > 30
    assert alone == plotting | NEED_PIPELINE
    assert with_pipeline == {}


def test_the_library_requires_what_it_imports_and_no_more():
    owners = packages_distributions()
    parts = {PACKAGE / "cli.py", PACKAGE / "curvature" / "fits" / "weight_tails.py"}
    parts |= {PACKAGE / "curvature" / "datasets" / "decode.py", *(PACKAGE / "plotting").rglob("*")}
    parts |= {PACKAGE / "claims" / "render.py"}
    used = set()
    for module in {*PACKAGE.rglob("*.py")} - parts:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add(node.module.partition(".")[0])
    used -= sys.stdlib_module_names | {"spectral_laws"}
    imported = {canonicalize_name(owner) for name in used for owner in owners[name]}
    assert imported == {canonicalize_name(Requirement(t).name) for t in PROJECT["dependencies"]}


def test_mypy_sees_the_types_of_the_installed_library(installed, tmp_path):
    (tmp_path / "consumer.py").write_text(
        "from spectral_laws.curvature import measure_directional_curvature\n"
        "from spectral_laws.fitting import fit_loglog\n"
        "reveal_type(measure_directional_curvature)\n"
        "fit_loglog([1.0], [2.0]).slope.upper()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed]
    result = subprocess.run(
        [*command, "consumer.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 3, result.stdout + result.stderr
    assert "list[spectral_laws.curvature.derivatives.directional.DirectionalSpectrum]" in lines[0]
    assert lines[1].startswith('consumer.py:4: error: "float" has no attribute "upper"')


def requirements():
    """Everything in pyproject.toml: name -> bound."""
    found = {}
    for text in [*PROJECT["dependencies"], *(t for texts in EXTRAS.values() for t in texts)]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        assert found.setdefault(name, requirement.specifier) == requirement.specifier, name
    return found


def test_conda_gets_what_pip_gets():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *entries, pip = environment["dependencies"]
    assert pip["pip"].pop() == "--editable ."  # --no-deps is no option in a requirements file
    pairs = [(*entry.split(), "")[:2] for entry in [*entries, *pip["pip"]]]
    expected = {CONDA_NAMES.get(name, name): bound for name, bound in requirements().items()}
    expected |= {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}
    assert {name: SpecifierSet(bound) for name, bound in pairs} == expected
    assert len(pairs) == len(dict(pairs))


def test_constraints_pin_every_requirement_within_its_bound():
    lines = (ROOT / "constraints.txt").read_text().split()
    pins = {canonicalize_name(name): pin for name, pin in (line.split("==") for line in lines)}
    assert len(pins) == len(lines)
    for name, bound in requirements().items():
        assert bound.contains(pins[name]), name
    # Its builds go with one build of torch each; who has the weights has it already.
    assert "torchvision" not in pins
    assert set(EXTRAS["vision"]) <= set(EXTRAS["pipeline"])
