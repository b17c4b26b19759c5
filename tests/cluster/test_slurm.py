"""profiles/slurm on a real SLURM: failures, cancelled jobs, interruptions."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from one_machine import copy_project, wait_for, write_profile

pytestmark = pytest.mark.xdist_group("cluster")
QUICK = Path(__file__).with_name("quick_snakemake.py")


class Project:
    """A copy of the pipeline whose jobs go to the cluster."""

    def __init__(self, folder):
        self.folder = copy_project(folder)
        self._quick = write_profile(folder)

    def start(self, *arguments, program="workflow/run.py"):
        """Start a run; its output can be read."""
        command = [sys.executable, program, *arguments]
        return subprocess.Popen(
            [*command, "--profile", "profiles/slurm", "--profile", str(self._quick)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # What a shell has started in the background ignores Ctrl-C, and so would its heirs.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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


def test_groups_hold_every_short_rule(root):
    """A group is written by hand; a rule that is in none is a job of its own, whose start costs."""
    rules = set()
    for file in root.glob("workflow/rules/*.smk"):
        rules |= set(re.findall(r"^ *rule (\w+):", file.read_text(), re.MULTILINE))
    groups = yaml.safe_load((root / "profiles/slurm/config.yaml").read_text())["groups"]
    assert set(groups) - {"plot_curvature_audit"} <= rules
    short = {rule for rule in rules if rule.startswith("collect_")}
    assert short <= set(groups)


def test_a_failing_job_is_reported_with_its_log(project):
    table = project.folder / "results/smoke/recovery/spectrum.parquet"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"PAR1 and nothing else")
    figure = "figures/smoke/recovery_spectrum.pdf"
    output, status = end_of(project.start(figure, "--retries", "0", program=QUICK))
    assert status != 0
    assert "log: logs/smoke/plot_recovery_spectrum.log" in output
    assert re.search(r"log: \S+/logs/slurm/group_recovery\S+/\d+\.log", output)
    message = "error: results/smoke/recovery/spectrum.parquet: not a readable Parquet table"
    assert message in output


def test_a_run_goes_on_after_ctrl_c_after_a_kill_and_after_a_cancelled_job(cluster, project):
    """One job, four times: only the last one ends well."""
    script = project.folder / "workflow/scripts/recover_features.py"
    shown = 'import os\nprint("GPU", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)\n'
    script.write_text(shown + script.read_text())
    teachers = "recovery/depth_linear/d12/seeds0-1"
    table = f"results/smoke/{teachers}/metrics.parquet"
    arguments = [table, "--configfile", "config/smoke.yaml"]
    arguments += ["--set-resources", "recover_features:gpu=1"]

    run = project.start(*arguments)
    interrupted = running_job(cluster, run)
    os.killpg(run.pid, signal.SIGINT)
    output, status = end_of(run)
    assert status != 0, output
    wait_for(lambda: not cluster.jobs("%i"), seconds=30, what="no job left")

    run = project.start(*arguments)
    left = running_job(cluster, run, after=interrupted)
    os.killpg(run.pid, signal.SIGKILL)
    end_of(run)
    assert cluster.jobs("%i") == [[str(left)]]

    run = project.start(*arguments)
    cancelled = running_job(cluster, run, after=left)
    cluster.run("scancel", str(cancelled))
    again = running_job(cluster, run, after=cancelled)
    output, status = end_of(run)
    assert status == 0, output
    assert f"cancelling SLURM job {left} of a run that was killed" in output
    assert f"SLURM-job '{cancelled}' failed, SLURM status is: 'CANCELLED'" in output
    assert "Trying to restart job" in output

    assert (project.folder / table).exists()
    log = project.folder / f"logs/smoke/{teachers.replace('recovery', 'recover_features')}.log"
    assert re.match("GPU [01]\n", log.read_text())
    jobs = {int(job["JobId"]): job for job in cluster.finished()}
    ends = {job: jobs[job]["JobState"] for job in [interrupted, left, cancelled, again]}
    assert list(ends.values()) == ["CANCELLED"] * 3 + ["COMPLETED"]
    assert {(jobs[job]["Partition"], jobs[job]["Gres"]) for job in ends} == {("gpu", "gres:gpu:1")}
