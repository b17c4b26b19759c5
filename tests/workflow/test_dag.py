"""The pipeline's graph: what is planned, and what an edit reruns."""

import pytest

SMOKE = ("--configfile", "config/smoke.yaml")


def edit(project, name, old="", new=""):
    """Replace text in a file of the project, or append a comment to it."""
    path = project.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else f"{text}\n# edited\n")


@pytest.mark.parametrize("preset", ["laptop", "smoke", "paper"])
def test_every_preset_can_be_planned_in_under_300_jobs(project, preset):
    arguments = () if preset == "laptop" else ("--configfile", f"config/{preset}.yaml")
    jobs = project.planned(*arguments)
    assert jobs["recover_features"] == jobs["fit_kernel_ridge"] > 0
    assert jobs["train_model"] == jobs["measure_curvature"] > 0
    assert sum(jobs.values()) < 300


def test_one_figure_plans_its_ancestors_alone_whatever_the_active_preset(project):
    for arguments in [(), SMOKE]:
        jobs = project.planned("figures/smoke/curvature_triangle.pdf", *arguments)
        assert jobs == {
            "prepare_data": 1,
            "train_model": 2,
            "measure_curvature": 2,
            "collect_curvature": 1,
            "fit_exponents": 1,
            "plot_curvature_triangle": 1,
        }


def test_presets_do_not_share_outputs(project):
    outputs = {}
    for preset in ("laptop", "smoke"):
        arguments = () if preset == "laptop" else SMOKE
        table = project.snakemake("--summary", *arguments).splitlines()[1:]
        outputs[preset] = {line.split("\t")[0] for line in table if "\t" in line}
        assert all(f"/{preset}/" in name for name in outputs[preset])
    assert not outputs["laptop"] & outputs["smoke"]


def test_editing_a_figure_reruns_that_figure_alone(project):
    project.pretend_done(*SMOKE)
    edit(project, "src/spectral_laws/plotting/recovery_mse.py")
    assert project.planned(*SMOKE) == {"all": 1, "plot_recovery_mse": 1}


def test_editing_the_shared_style_reruns_only_figures(project):
    project.pretend_done(*SMOKE)
    edit(project, "src/spectral_laws/plotting/style.py")
    jobs = project.planned(*SMOKE)
    assert set(jobs) - {"all"} == {name for name in jobs if name.startswith("plot_")}
    assert len(jobs) == 8


def test_editing_the_measurement_measures_again_but_does_not_train(project):
    project.pretend_done(*SMOKE)
    edit(project, "src/spectral_laws/curvature/directional.py")
    jobs = project.planned(*SMOKE)
    assert jobs["measure_curvature"] == 2
    assert "train_model" not in jobs
    assert "recover_features" not in jobs


def test_editing_the_claims_registry_judges_again(project):
    project.pretend_done(*SMOKE)
    edit(project, "src/spectral_laws/claims/registry.yaml")
    assert project.planned(*SMOKE) == {"all": 1, "evaluate_claims": 1, "plot_claims": 1}
