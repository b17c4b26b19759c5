"""Run the smoke preset through profiles/slurm from clean, and compare it with a local run.

python tests/cluster/smoke_on_slurm.py [FOLDER], where FOLDER holds results/smoke and figures/smoke
of a local run.
"""

import collections
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from one_machine import ROOT, Cluster, copy_project, why_not, write_profile

GPU_RULES = ["train_model", "measure_curvature"]
# A job of SLURM costs five seconds more than the same job in a local run, and those of this preset
# take as long themselves: several of them make one.
STAGES = {
    "data": ["prepare_data"],
    "teachers": [
        "recover_features",
        "fit_baselines",
        "compute_spectrum",
        "compute_population",
        "predict_exponents",
        "measure_perturbation",
    ],
    "networks": [*GPU_RULES, "measure_controls"],
    "race": ["tune_method", "train_method", "train_layer_rates", "measure_responses"],
}
TOGETHER = {"data": 6, "teachers": 11, "networks": 4, "race": 5}


def main(arguments):
    """Run, check, compare."""
    if reason := why_not():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        project = copy_project(Path(name))
        run(project)
        check(cluster.finished())
        if arguments:
            command = ["workflow/compare.py", "--preset", "smoke", arguments[0], str(project)]
            subprocess.run([sys.executable, *command], cwd=ROOT, check=True)


def run(project):
    """The whole preset, through profiles/slurm."""
    profile = yaml.safe_load((project / "profiles/slurm/config.yaml").read_text())
    stages = {rule: stage for stage, rules in STAGES.items() for rule in rules}
    quick = write_profile(
        project,
        **{
            "groups": profile["groups"] | stages,
            "group-components": profile["group-components"] | TOGETHER,
            "set-resources": {rule: {"gpu": 1} for rule in GPU_RULES},
        },
    )
    start = time.monotonic()
    subprocess.run(
        [
            *[
                sys.executable,
                "-m",
                "snakemake",
                "--profile",
                "profiles/slurm",
                "--profile",
                str(quick),
            ],
            *["--configfile", "config/smoke.yaml", "--quiet", "rules"],
        ],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(project / "src")},
        check=True,
    )
    print(f"smoke preset through SLURM: {time.monotonic() - start:.0f} s")


def check(jobs):
    """The jobs really were SLURM's, and those with `gpu` had one."""
    for job in jobs:
        print(
            *(
                job[field]
                for field in [
                    "JobId",
                    "JobState",
                    "Partition",
                    "Comment",
                    "StartTime",
                    "EndTime",
                    "Tres",
                    "Gres",
                ]
            )
        )
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    stages = collections.Counter(job["Comment"] for job in jobs)
    print(stages)
    for job in jobs:
        expected = ("gpu", "gres:gpu:1") if job["Comment"] == "rule_networks" else ("cpu", "")
        assert (job["Partition"], job["Gres"]) == expected, job


if __name__ == "__main__":
    main(sys.argv[1:])
