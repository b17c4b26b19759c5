"""The report of what is no finished run: refused, in words, with nothing written."""

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def build(make_project, tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("report"))
    config = project.folder / "config"
    (config / "steep.yaml").write_text("preset: other\n")
    for preset in ("smoke", "steep"):
        results = project.folder / "results" / preset
        results.mkdir(parents=True)
        (results / "provenance.json").write_text("{}")

    def run(preset):
        """What it says; nothing may come of it."""
        result = subprocess.run(
            [sys.executable, "workflow/build_report.py", preset],
            cwd=project.folder,
            env=os.environ | {"PYTHONPATH": str(project.folder / "src")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode != 0
        assert "Traceback" not in result.stderr
        assert not list(project.folder.glob("results/*/report/*"))
        return result.stderr

    return run


def test_no_run(build):
    assert "results/laptop: no finished run; finish the run first: `make reproduce`" in build(
        "laptop"
    )


def test_results_that_are_not_what_the_configuration_says(build):
    said = build("smoke")
    assert "results/smoke: not what the configuration and the code say now" in said
    assert "PRESET=smoke" in said


def test_a_file_that_is_not_named_after_its_preset(build):
    assert "config/steep.yaml: says preset: other; name the file after its preset" in build("steep")
