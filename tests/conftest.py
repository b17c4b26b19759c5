import importlib
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import settings

from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import Schema, load_schema

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["Snakefile", "config.yaml", "config", "workflow", "profiles", "src"]


# How long an example takes says what else the machine does.
settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")

# The two lanes: a test that starts another process says so, by `slow`.
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system"}
fast_lane = False


def refuse_processes(event, arguments):
    """An audit hook: nothing in the fast lane starts a process, however it goes about it."""
    if fast_lane and event in STARTS:
        raise RuntimeError(f"a test that starts processes is `slow`: {event} {arguments[:2]}")


sys.addaudithook(refuse_processes)


def pytest_collection_modifyitems(items):
    """Who has a copy of the pipeline runs Snakemake in it."""
    for item in items:
        if {"make_project", "cluster"} & set(item.fixturenames):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_finish(session):
    """Stop where pytest-xdist no longer keeps the tests of a group in one process.

    It has done so silently, with a pytest that it did not know: what a group shares is then made
    once per process.
    """
    if session.config.getoption("loadgroup", False):
        for item in session.items:
            assert item.get_closest_marker("xdist_group") is None or "@" in item.nodeid, item.nodeid
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Set the lane of a test before its fixtures are made."""
    global fast_lane
    Provenance({}).facts()  # which name the commit: git is asked once, by no test in particular
    fast_lane = item.get_closest_marker("slow") is None
    try:
        return (yield)
    finally:
        fast_lane = False


def fork_snakemake(folder, *arguments):
    """Run Snakemake in a folder, in a child of this process: its exit status and output.

    The child has all that Snakemake imports, which takes half of the time of a dry run, but not
    this package, which it imports from the folder's own sources, as its jobs do.
    """
    importlib.import_module("snakemake.cli")
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(300)
                if "--touch" in arguments:
                    time.sleep = lambda _: None  # a tenth of a second per job
                os.chdir(folder)
                os.environ["PYTHONPATH"] = str(folder / "src")
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                sys.stdout = sys.stderr = output
                for name in [name for name in sys.modules if name.split(".")[0] == "spectral_laws"]:
                    del sys.modules[name]
                sys.path.insert(0, str(folder / "src"))
                sys.modules["snakemake.cli"].main([*arguments])
            except SystemExit as end:
                status = end.code or 0
            finally:
                output.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read()


class Project:
    """A copy of the pipeline in a folder of its own, run by this Python."""

    def __init__(self, folder):
        self.folder = folder

    def snakemake(self, *arguments, check=True):
        """Run snakemake here; its output in one string."""
        status, output = fork_snakemake(self.folder, "--cores", "2", *arguments)
        assert (status == 0) == check, output
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
        self.snakemake("--touch", "--forceall", *arguments)
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


@pytest.fixture(scope="session")
def run_script(root):
    """Run a script of workflow/scripts in this process, as its command line would."""

    def run(name, *arguments, **options):
        """Exit status and output; ``top_k=20`` is ``--top-k 20``, a dict JSON, True a flag."""
        words = [root / f"workflow/scripts/{name}.py", *arguments]
        for option, value in options.items():
            words.append(f"--{option.replace('_', '-')}")
            if value is not True:
                words.append(json.dumps(value) if isinstance(value, dict) else value)
        words = [str(word) for word in words]
        output, errors, status = io.StringIO(), io.StringIO(), 0
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(output),
            redirect_stderr(errors),
        ):
            patch.setattr(sys, "argv", words)
            try:
                runpy.run_path(words[0], run_name="__main__")
            except SystemExit as end:
                status = end.code
        return subprocess.CompletedProcess(words, status, output.getvalue(), errors.getvalue())

    return run
