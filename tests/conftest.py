import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spectral_laws.tables.schemas import Schema, load_schema

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["Snakefile", "config.yaml", "config", "workflow", "profiles", "src"]


class Project:
    """A copy of the pipeline in a folder of its own, run by this Python."""

    def __init__(self, folder):
        self.folder = folder

    def snakemake(self, *arguments, check=True):
        """Run snakemake here; its output in one string."""
        result = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            timeout=300,
        )
        output = result.stdout + result.stderr
        if check:
            assert result.returncode == 0, output
        else:
            assert result.returncode != 0, output
        return output

    def planned(self, *arguments):
        """Rule name -> number of jobs that a dry run would start."""
        lines = self.snakemake(*arguments, "--dry-run", "--quiet", "rules").splitlines()
        if any(line.startswith("Nothing to be done") for line in lines):
            return {}
        start = next(i for i, line in enumerate(lines) if line.startswith("---"))
        jobs = {}
        for line in lines[start + 1 :]:
            if not line.strip():
                break
            rule, count = line.split()
            jobs[rule] = int(count)
        del jobs["total"]
        return jobs

    def pretend_done(self, *arguments):
        """Make every output of a preset exist and be up to date, without computing it."""
        table = self.snakemake("--summary", *arguments)
        for line in table.splitlines():
            name = line.split("\t")[0]
            if name.startswith(("results/", "figures/")):
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        self.snakemake("--touch", *arguments)
        assert self.planned(*arguments) == {}


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def reference() -> Path:
    """The author's result files, which are not part of the repository."""
    folder = ROOT.parent / "shared" / "reference" / "curvature"
    if not folder.is_dir():
        pytest.skip(f"the author's result files are not in {folder}")
    return folder


@pytest.fixture(scope="session")
def loose_schema():
    """A schema of any table, in which every value may be missing."""

    def make(table):
        types = {"int64", "float64", "bool"}
        columns = [
            {"name": name, "dtype": str(values.dtype) if str(values.dtype) in types else "str"}
            | {"nullable": True, "unit": "-", "meaning": "any"}
            for name, values in table.items()
        ]
        about = {"name": "toy/any", "meaning": "any", "row": "any", "rule": "none"}
        return Schema.model_validate(about | {"columns": columns})

    return make


@pytest.fixture(scope="session")
def complete():
    """A table with all columns of a schema: those it lacks are zero or empty."""

    def make(table, name):
        schema = load_schema(name)
        empty = {"int64": 0, "float64": 0.0, "bool": False, "str": ""}
        absent = {c.name: empty[c.dtype] for c in schema.columns if c.name not in table}
        return table.assign(**absent)[schema.names]

    return make


@pytest.fixture(scope="session")
def make_project(root):
    """Copy the pipeline into a folder."""

    def make(folder):
        for part in PARTS:
            source = root / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / part)
        return Project(folder)

    return make
