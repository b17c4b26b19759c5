import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

HOOK = Path(__file__).parent / "hook"


def overlay(everything):
    """A preset of the least that a run can consist of; `everything` is config.yaml."""
    studies = dict.fromkeys(everything["recovery"]["studies"])
    studies["quadratic"] = {
        "dimensions": [8],
        "sample_exponents": {"start": 1.6, "stop": 3.0, "count": 3},
        "seeds": 2,
    }
    models = dict.fromkeys(everything["curvature"]["models"])
    models["mlp"] = {"width": 16, "depth": 1, "top_k": 16}
    models["resnet18"] = {"width": 2, "checkpoints": []}
    experiments = dict.fromkeys(everything["curvature"]["experiments"])
    experiments["architectures"] = {"models": ["mlp", "resnet18"]}
    race = {"model": "mlp", "train_size": 100, "validation_size": 50, "batch_size": 25}
    return {
        "preset": "faults",
        "intervals": {"resamples": 100},
        "recovery": {
            "studies": studies,
            "baselines": {"studies": ["quadratic"]},
            "spectrum": {"dimension": 8, "sample_exponent": 2.5},
        },
        "curvature": {
            "seeds": 2,
            "data": {"images": {"train_size": 200, "test_size": 50}},
            "training": {"sgd": {"max_epochs": 4, "target_loss": 1e-9}},
            "models": models,
            "measurement": {"batch_size": 32},
            "controls": {"models": ["mlp"], "replicates": 1},
            "experiments": experiments,
        },
        "optimizers": {
            "races": {"text": None, "images": race},
            "responses": {"layers": ["layers.0"], "samples": 50},
        },
    }


class Run:
    """One start of the pipeline, in a session of its own, as a terminal would have it."""

    def __init__(self, folder, command, faults):
        self.output_file = folder / f"output-{time.monotonic_ns()}.txt"
        with self.output_file.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env=os.environ
                | {"PYTHONPATH": f"{HOOK}:{folder / 'src'}", "FAULTS": json.dumps(faults)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # What a shell has started in the background ignores Ctrl-C, and so would its heirs.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def output(self):
        return self.output_file.read_text()

    @property
    def executed(self):
        """Rule name -> number of its jobs that were started."""
        return dict(Counter(re.findall(r"^(?:local)?rule (\w+):$", self.output, re.MULTILINE)))

    def wait(self):
        """Wait for the end; the exit status."""
        return self.process.wait(timeout=120)

    def job_at(self, mark):
        """Wait until a job stands at its mark; its process id."""
        end = time.monotonic() + 120
        while not mark.exists():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < end, self.output
            time.sleep(0.05)
        return int(mark.read_text())

    def signal(self, number):
        """Send a signal to Snakemake and its jobs, as Ctrl-C does."""
        os.killpg(self.process.pid, number)

    def stop(self):
        """End whatever is left of it."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait(timeout=60)


class Pipeline:
    """A copy of the project with the small preset."""

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results/faults"
        self.figures = folder / "figures/faults"
        self.logs = folder / "logs/faults"
        self._runs = []
        self._mounts = []

    @staticmethod
    def fault(script, target, *, count=1, mark=None, late=None):
        """A fault for :mod:`sitecustomize`: it waits at a mark, shows a file late, or dies."""
        act = {"act": "die"} if mark is None else {"act": "wait", "mark": str(mark)}
        if late is not None:
            act = {"act": "late", "seconds": late}
        return {"script": script, "target": target, "count": count} | act

    def start(self, *targets, cores=1, options=(), faults=(), by="workflow/run.py"):
        """Start the documented command, or ``-m snakemake``, and return at once."""
        options = ["--cores", str(cores), *targets, *options, "--configfile", "config/faults.yaml"]
        self._runs.append(Run(self.folder, [*by.split(), *options], list(faults)))
        return self._runs[-1]

    def run(self, *targets, fails=False, **options):
        """Run the documented command to its end."""
        run = self.start(*targets, **options)
        assert (run.wait() != 0) == fails, run.output
        return run

    def script(self, name, *arguments):
        """Run one script alone, as a person would; its output and exit status."""
        result = subprocess.run(
            [sys.executable, f"workflow/scripts/{name}", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return result.stdout + result.stderr, result.returncode

    def mount(self, name, *, size):
        """Put what a folder holds on a disk of its own, of so many KiB."""
        if os.getuid() != 0:
            pytest.skip("only root can mount a small disk")
        place, aside = self.folder / name, self.folder / f"{name}.aside"
        place.mkdir(exist_ok=True)
        place.rename(aside)
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
        mounted = subprocess.run(command, capture_output=True, text=True)
        if mounted.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
        self._mounts.append(place)
        shutil.copytree(aside, place, dirs_exist_ok=True)
        shutil.rmtree(aside)
        return place

    def remount(self, place, options):
        """Change a mounted disk: its size, read-only or not."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)

    def close(self):
        """End its processes and undo its mounts."""
        for run in self._runs:
            run.stop()
        for place in reversed(self._mounts):
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="session")
def finished(make_project, tmp_path_factory):
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    make_project(folder)
    everything = yaml.safe_load((folder / "config.yaml").read_text())
    (folder / "config" / "faults.yaml").write_text(yaml.safe_dump(overlay(everything)))
    pipeline = Pipeline(folder)
    try:
        pipeline.run(
            "results/faults/recovery/thresholds.parquet",
            "results/faults/curvature/mlp/seeds0-1/checkpoints.safetensors",
            "figures/faults/recovery_mse.pdf",
            cores=2,
        )
    finally:
        pipeline.close()
    return pipeline


@pytest.fixture
def pipeline(finished, tmp_path):
    """A copy of the finished run, to be disturbed."""
    folder = tmp_path / "project"
    shutil.copytree(finished.folder, folder)
    pipeline = Pipeline(folder)
    yield pipeline
    pipeline.close()
