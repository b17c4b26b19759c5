"""The pipeline's graph: what is planned, and what an edit reruns."""

import inspect
import os
import re
import resource
import runpy
from contextlib import contextmanager

import pytest

from spectral_laws.figure_registry import load_figures

SMOKE = ("--configfile", "config/smoke.yaml")
RULES = [f"plot_{name}" for name, figure in load_figures().items() if not figure.needs]
CURVATURE_FIGURES, OPTIMIZER_FIGURES = (
    [rule for rule in RULES if rule.startswith(f"plot_{part}")]
    for part in ("curvature", "optimizers")
)
RACES = [
    "tune_method",
    "train_method",
    "collect_race",
    "train_layer_rates",
    "collect_layer_rates",
    "measure_responses",
    "evaluate_claims",
    *OPTIMIZER_FIGURES,
    "plot_claims",
    "render_claims",
]
"""What the update of a method, or a measured exponent, matters to."""


@pytest.fixture(scope="session")
def finished(make_project, tmp_path_factory):
    """A project whose smoke preset is up to date; edits are undone after each test."""
    project = make_project(tmp_path_factory.mktemp("finished"))
    project.pretend_done(*SMOKE)
    return project


@contextmanager
def edited(project, name, old="", new="# edited"):
    """Inside the block a file of the project has ``new`` in place of ``old``, or appended."""
    path = project.folder / name
    text, times = path.read_text(), path.stat()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else f"{text}\n{new}\n")
    yield
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def processor_seconds():
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# In the paper preset 96 of the jobs are races, of hours each, which nothing is gained by joining.
@pytest.mark.parametrize(("preset", "most"), [("laptop", 300), ("smoke", 300), ("paper", 400)])
def test_every_preset_can_be_planned_in_few_jobs_and_seconds(project, preset, most):
    arguments = () if preset == "laptop" else ("--configfile", f"config/{preset}.yaml")
    before = processor_seconds()
    jobs = project.planned(*arguments)
    # Of the processor, so that other work on the machine does not count.
    assert processor_seconds() - before < 10
    assert jobs["recover_features"] > jobs["fit_baselines"] > 0
    assert jobs["train_model"] == jobs["measure_curvature"] > 0
    assert jobs["tune_method"] == jobs["train_method"] > 0
    assert jobs["collect_race"] == 4
    assert sum(jobs.values()) < most


def test_every_rule_passes_every_option_of_its_script(project):
    """One left out would be the script's default, whatever the configuration says."""
    plan = project.snakemake(*SMOKE, "--dry-run", "--printshellcmds")
    commands = {}
    for script, command in re.findall(r"workflow/scripts/(\w+)\.py (.*)", plan):
        commands[script] = commands.get(script, "") + command
    assert len(commands) > 20
    for script, command in commands.items():
        main = runpy.run_path(str(project.folder / f"workflow/scripts/{script}.py"))["main"]
        for option in inspect.signature(main).parameters.values():
            name = option.name.replace("_", "-")
            if "ArgumentInfo" not in repr(option.annotation):
                assert re.search(rf"(?<!\S)--(no-)?{name}(?!\S)", command), (script, name)


def test_one_figure_plans_its_ancestors_alone_whatever_the_active_preset(project):
    for arguments in [(), SMOKE]:
        jobs = project.planned("figures/smoke/curvature_triangle.pdf", *arguments)
        assert jobs == {
            "prepare_data": 6,
            "train_model": 10,
            "measure_curvature": 10,
            "collect_curvature": 2,
            "fit_exponents": 1,
            "fit_ladder": 1,
            "compare_models": 1,
            "plot_curvature_triangle": 1,
        }


def test_presets_do_not_share_outputs(project):
    outputs = {}
    for preset in ("laptop", "smoke"):
        arguments = () if preset == "laptop" else SMOKE
        lines = [
            line.split("\t") for line in project.snakemake("--summary", *arguments).splitlines()
        ]
        outputs[preset] = {line[0] for line in lines if len(line) > 1} - {"output_file"}
        assert all(f"/{preset}/" in name for name in outputs[preset])
    assert not outputs["laptop"] & outputs["smoke"]


@pytest.mark.xdist_group("finished")
@pytest.mark.parametrize(
    ("name", "reruns"),
    [
        ("src/spectral_laws/plotting/recovery/mse.py", {"plot_recovery_mse"}),
        (
            "src/spectral_laws/claims/registry.yaml",
            {"evaluate_claims", "render_claims", "plot_claims"},
        ),
        ("src/spectral_laws/claims/render.md.j2", {"render_claims"}),
        (
            "src/spectral_laws/plotting/style.py",
            {*RULES},
        ),
        ("src/spectral_laws/optimizers/spectral_update.py", {*RACES}),
        (
            "src/spectral_laws/curvature/derivatives/directional.py",
            {
                "measure_curvature",
                "measure_controls",
                "collect_curvature",
                "collect_controls",
                "fit_exponents",
                "fit_ladder",
                "fit_independence",
                "fit_windows",
                "fit_weight_tails",
                "compare_models",
                *CURVATURE_FIGURES,
                *RACES,
            },
        ),
    ],
    ids=lambda value: value.split("/")[-1] if isinstance(value, str) else "",
)
def test_an_edit_reruns_what_uses_the_file_and_nothing_else(finished, name, reruns):
    with edited(finished, name):
        assert set(finished.planned(*SMOKE)) == {"all", "collect_provenance", *reruns}


@pytest.mark.xdist_group("finished")
def test_a_changed_setting_reruns_what_depends_on_it_and_nothing_else(finished):
    one = "results/smoke/recovery/smoothing/d25/seeds0-1/metrics.parquet"
    with edited(finished, "config/smoke.yaml", "dimensions: [25, 50, 100]", "dimensions: [25, 50]"):
        assert finished.planned(one) == {}
    with edited(finished, "config/smoke.yaml", "dimensions: [12, 16]", "dimensions: [12]"):
        assert finished.planned(one) == {}
    with edited(finished, "config/smoke.yaml", "start: 0.5", "start: 0.6"):
        assert finished.planned(one) == {"recover_features": 1}
    with edited(finished, "config.yaml", "seed: 20260514", "seed: 1"):
        assert finished.planned(one) == {"recover_features": 1}


@pytest.mark.xdist_group("finished")
def test_a_changed_setting_of_a_method_reruns_that_method_alone(finished):
    runs = [f"results/smoke/optimizers/images/{name}/race.parquet" for name in ("sgd", "adamw")]
    with edited(finished, "config.yaml", "momentum: 0.9 # of SGD,", "momentum: 0.8 #"):
        assert finished.planned(*runs) == {"tune_method": 1, "train_method": 1}
    with edited(
        finished, "config.yaml", "optimizer: soap, momentum: 0.95", "optimizer: soap, momentum: 0"
    ):
        assert finished.planned(*runs) == {}
    with edited(
        finished, "config/smoke.yaml", "batch_size: 25, seeds: 2", "batch_size: 25, seeds: 3"
    ):
        # More trainings are not tuned again.
        assert finished.planned(*runs) == {"train_method": 2}
    with edited(finished, "config/smoke.yaml", "tuning_seeds: 1 }", "tuning_seeds: 2 }"):
        assert finished.planned(*runs) == {"tune_method": 2, "train_method": 2}
    with edited(
        finished, "config/smoke.yaml", "batch_size: 25, seeds: 2", "batch_size: 50, seeds: 2"
    ):
        assert finished.planned(*runs) == {"tune_method": 2, "train_method": 2}
