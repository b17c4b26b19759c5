"""profiles/slurm on a real SLURM: failures, cancelled jobs, interruptions."""

import os
import re
import signal
import subprocess
import sys

import pytest
from one_machine import copy_project, wait_for, write_profile

pytestmark = pytest.mark.xdist_group("cluster")

# One job without inputs, of a rule that can use a GPU.
TABLE = "results/smoke/recovery/depth_linear/d12/seeds0-1/metrics.parquet"
TEACHERS = [TABLE, "--configfile", "config/smoke.yaml"]
FIELDS = ["JobState", "Partition", "Gres"]


class Project:
    """A copy of the pipeline whose jobs go to the cluster."""

    def __init__(self, folder):
        self.folder = copy_project(folder)
        self._quick = write_profile(folder)

    def start(self, *arguments):
        """Start a run; its output can be read."""
        command = [sys.executable, "workflow/run.py", *arguments]
        return subprocess.Popen(
            [*command, "--profile", "profiles/slurm", "--profile", str(self._quick)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def project(cluster, tmp_path):
    yield Project(tmp_path)
    cluster.run("scancel", "--user=root")
    wait_for(lambda: not cluster.jobs("%i"), seconds=30, what="no job left")


def end_of(run):
    """The output of a run and its exit status."""
    return run.communicate(timeout=120)[0], run.returncode


def running_job(cluster, run, *, after=0):
    """Id of the job of a run that is at work, younger than another one."""

    def find():
        assert run.poll() is None, run.stdout.read()
        ids = [int(job[0]) for job in cluster.jobs("%i", states="running")]
        return max((job for job in ids if job > after), default=None)

    return wait_for(find, seconds=60, what="a job runs")


def test_a_failing_job_is_reported_with_its_log(project):
    table = project.folder / "results/smoke/recovery/spectrum.parquet"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"PAR1 and nothing else")
    figure = "figures/smoke/recovery_spectrum.pdf"
    output, status = end_of(project.start(figure, "--retries", "0"))
    assert status != 0
    assert "log: logs/smoke/plot_recovery_spectrum.log" in output
    assert re.search(r"log: \S+/logs/slurm/group_recovery\S+/\d+\.log", output)
    message = "error: results/smoke/recovery/spectrum.parquet: not a readable Parquet table"
    assert message in output


def test_a_cancelled_job_is_submitted_again_and_gets_a_gpu(cluster, project):
    script = project.folder / "workflow/scripts/recover_features.py"
    shown = 'import os\nprint("GPU:", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)\n'
    script.write_text(shown + script.read_text())

    run = project.start(*TEACHERS, "--set-resources", "recover_features:gpu=1")
    first = running_job(cluster, run)
    cluster.run("scancel", str(first))
    second = running_job(cluster, run, after=first)
    output, status = end_of(run)
    assert status == 0, output
    assert f"SLURM-job '{first}' failed, SLURM status is: 'CANCELLED'" in output
    assert "Trying to restart job" in output

    assert (project.folder / TABLE).exists()
    log = project.folder / "logs/smoke/recover_features/depth_linear/d12/seeds0-1.log"
    assert re.match("GPU: [01]\n", log.read_text())
    jobs = {job["JobId"]: job for job in cluster.finished()}
    seen = [[jobs[str(job)][field] for field in FIELDS] for job in [first, second]]
    assert seen == [["CANCELLED", "gpu", "gres:gpu:1"], ["COMPLETED", "gpu", "gres:gpu:1"]]


def test_after_ctrl_c_or_a_kill_the_same_command_finishes(cluster, project):
    run = project.start(*TEACHERS)
    first = running_job(cluster, run)
    os.killpg(run.pid, signal.SIGINT)
    output, status = end_of(run)
    assert status != 0, output
    wait_for(lambda: not cluster.jobs("%i"), seconds=30, what="no job left")

    run = project.start(*TEACHERS)
    second = running_job(cluster, run, after=first)
    os.killpg(run.pid, signal.SIGKILL)
    end_of(run)
    assert cluster.jobs("%i") == [[str(second)]]

    output, status = end_of(project.start(*TEACHERS))
    assert status == 0, output
    assert (project.folder / TABLE).exists()
    jobs = {job["JobId"]: job for job in cluster.finished()}
    assert [jobs[str(job)]["JobState"] for job in [first, second]] == ["CANCELLED"] * 2
