"""Run the smoke preset through profiles/slurm from clean, and compare it with a local run.

python tests/cluster/smoke_on_slurm.py FOLDER, where FOLDER holds results/smoke and figures/smoke
of a local run. Everything is computed; of the figures, which are all made in the same way, four.
"""

import collections
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from one_machine import ROOT, Cluster, copy_project, why_not, write_profile

from spectral_laws.figure_registry import load_figures

HERE = Path(__file__).resolve().parent
FIGURES = ["recovery_mse", "curvature_triangle", "optimizers_race", "claims"]
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
TOGETHER = {"data": 6, "teachers": 8, "networks": 6, "race": 5}
# Most jobs wait for the networks; for teachers and figures hardly any: they fill gaps.
NICE = {"race": 100, "teachers": 200, "recovery": 300, "curvature": 300}


def main(local):
    """Run, check, compare."""
    if reason := why_not():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        project = copy_project(Path(name, "slurm"))
        reference = copy_results(Path(local), Path(name, "local"))
        run(project, targets_of(reference))
        check(cluster.finished())
        command = ["workflow/compare.py", "--preset", "smoke", str(reference), str(project)]
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True)


def copy_results(local, folder):
    """The local run, with the chosen figures alone."""
    shutil.copytree(local / "results/smoke", folder / "results/smoke")
    (folder / "figures/smoke").mkdir(parents=True)
    for name in FIGURES:
        for suffix in ("pdf", "png"):
            shutil.copy(local / f"figures/smoke/{name}.{suffix}", folder / "figures/smoke")
    return folder


def targets_of(reference):
    """Figures, claims and the tables of all teachers and networks."""
    files = [
        *reference.glob("figures/smoke/*"),
        *reference.glob("results/smoke/*/*.parquet"),
        *reference.glob("results/smoke/c*.*"),
    ]
    return [str(file.relative_to(reference)) for file in files]


def run(project, targets):
    """These files, through profiles/slurm."""
    profile = yaml.safe_load((project / "profiles/slurm/config.yaml").read_text())
    stages = {rule: stage for stage, rules in STAGES.items() for rule in rules}
    figures = {f"plot_{name}": name.split("_")[0] for name in load_figures()}
    groups = figures | profile["groups"] | stages
    quick = write_profile(
        project,
        **{
            "groups": groups,
            "group-components": profile["group-components"] | TOGETHER,
            "set-resources": {rule: resources_of(rule, group) for rule, group in groups.items()},
        },
    )
    command = [sys.executable, HERE / "quick_snakemake.py", *targets, "--quiet", "rules"]
    command += ["--profile", "profiles/slurm", "--profile", quick]
    command += ["--configfile", "config/smoke.yaml"]
    start = time.monotonic()
    # With the installed sources, not the copied ones: figures hold their commit, and are compared.
    subprocess.run(command, cwd=project, check=True)
    print(f"smoke preset through SLURM: {time.monotonic() - start:.0f} s")


def resources_of(rule, group):
    """Minutes of a rule in this preset, a GPU, and the order in which SLURM takes the jobs."""
    resources = {"runtime": 30, "slurm_extra": f"--nice={NICE.get(group, 0)}"}
    return resources | {"gpu": 1} if rule in GPU_RULES else resources


def check(jobs):
    """The jobs really were SLURM's, and those with `gpu` had one."""
    for job in jobs:
        times = [job[field].partition("T")[2] for field in ["StartTime", "EndTime"]]
        print(*times, job["Partition"], job["Gres"] or "-", job["Comment"].removeprefix("rule_"))
        assert job["JobState"] == "COMPLETED"
        on_gpu = job["Comment"].startswith("rule_networks")
        assert (job["Partition"], job["Gres"]) == (("gpu", "gres:gpu:1") if on_gpu else ("cpu", ""))
    stages = collections.Counter(job["Comment"].split("_")[1] for job in jobs)
    assert stages["networks"] == 2
    assert 12 <= len(jobs) <= 30
    print(f"{len(jobs)} jobs of SLURM")


if __name__ == "__main__":
    main(*sys.argv[1:])
