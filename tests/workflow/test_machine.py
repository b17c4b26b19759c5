"""What stops a run before its first job: no GPU, nowhere to write, a clock that is wrong."""

import os
import time

import pytest
import torch


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu_fails_at_once_and_says_what_to_change(project):
    overlay = "preset: on_gpu\ndevice: cuda\n"
    (project.folder / "config" / "on_gpu.yaml").write_text(overlay)
    target = "results/on_gpu/curvature/mlp/seeds0-2/history.parquet"
    output = project.snakemake(target, "--configfile", "config/on_gpu.yaml", check=False)
    assert "set `device: cpu` in the configuration" in output
    assert "nothing was started" in output
    assert "Traceback" not in output
    assert not (project.folder / "results").exists()
    # What needs no GPU can still be made, and the folder is not left locked.
    project.snakemake("results/on_gpu/config.yaml", "--configfile", "config/on_gpu.yaml")
    assert (project.folder / "results/on_gpu/config.yaml").exists()


def test_what_no_job_could_overcome_is_named_before_the_first(project):
    def refused(message, *options):
        output = project.snakemake("results/smoke/config.yaml", *options, check=False)
        assert message in output
        assert "Traceback" not in output
        assert not (project.folder / "results").exists()

    refused(f"run this in {project.folder}", "--directory", "elsewhere", "--dry-run")
    (project.folder / "scratch").touch()
    refused("scratch is a file")
    (project.folder / "scratch").unlink()
    source = "src/spectral_laws/atomic.py"
    os.utime(project.folder / source, (time.time() + 3600,) * 2)
    refused(f"{source}: dated in the future")
