"""What ends a run in the middle, for real: afterwards the same command continues."""

import importlib.util
import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from pyarrow.parquet import read_metadata

from spectral_laws.artifacts import read_arrays, read_provenance, read_table

pytestmark = [pytest.mark.xdist_group("faults"), pytest.mark.slow]

TRAINED = "results/faults/curvature/mlp/seeds0-1/checkpoints.safetensors"
HISTORY = "results/faults/curvature/mlp/seeds0-1/history.parquet"
MEASURED = "results/faults/curvature/mlp/seeds0-1/spectra.parquet"
TEACHERS = "results/faults/recovery/quadratic/d8/seeds0-1/thresholds.parquet"
METRICS = "results/faults/recovery/metrics.parquet"
THRESHOLDS = "results/faults/recovery/thresholds.parquet"
CONFIG = "results/faults/config.yaml"
FIGURE = "figures/faults/recovery_mse.pdf"


def remove(pipeline, *names):
    for name in names:
        (pipeline.folder / name).unlink()


def assert_equal(pipeline, finished, *names):
    """Tables and arrays by value, figures by bytes."""
    for name in names:
        ours, theirs = pipeline.folder / name, finished.folder / name
        if name.endswith(".parquet"):
            assert read_table(ours).equals(read_table(theirs)), name
        elif name.endswith(".safetensors"):
            arrays, expected = read_arrays(ours), read_arrays(theirs)
            assert arrays.keys() == expected.keys()
            for key in expected:
                np.testing.assert_array_equal(arrays[key], expected[key])
        else:
            assert ours.read_bytes() == theirs.read_bytes(), name


def temporary_files(folder):
    return [path for path in folder.rglob(".*.*") if path.suffix in (".parquet", ".safetensors")]


def test_killed_jobs_and_a_killed_snakemake(pipeline, finished, tmp_path):
    """A training of two networks, four epochs each, is ended twice and its state damaged."""
    remove(pipeline, TRAINED, HISTORY)
    log = pipeline.logs / "train_model/mlp/seeds0-1.log"
    scratch = pipeline.folder / "scratch"

    # kill -9 of the job, while the second epoch of the first network is being saved.
    mark = tmp_path / "second"
    run = pipeline.start(
        TRAINED, faults=[pipeline.fault("train_model.py", "training-", count=2, mark=mark)]
    )
    os.kill(run.job_at(mark), signal.SIGKILL)
    assert run.wait() != 0
    assert "logs/faults/train_model/mlp/seeds0-1.log" in run.output
    assert "mlp, replicate 0: epochs: 1/4" in run.output
    assert "Traceback" not in run.output
    assert run.executed == {"train_model": 1}
    assert len(temporary_files(scratch)) == 1

    # kill -9 of Snakemake, while the second epoch of the second network is being saved.
    mark = tmp_path / "fifth"
    run = pipeline.start(
        TRAINED, faults=[pipeline.fault("train_model.py", "training-", count=5, mark=mark)]
    )
    job = run.job_at(mark)
    assert log.read_text().startswith("mlp, replicate 0: epochs: 1/4")
    run.process.kill()
    run.wait()
    assert psutil.Process(job).is_running()

    # One of the two states is cut off as well.
    states = sorted(scratch.glob("training-*"), key=lambda path: path.stat().st_mtime)
    assert len(states) == 2
    os.truncate(states[0], states[0].stat().st_size // 2)

    run = pipeline.run(TRAINED)
    assert f"stopping job process {job} of a run that was killed" in run.output
    assert not psutil.pid_exists(job) or psutil.Process(job).status() == psutil.STATUS_ZOMBIE
    assert run.executed == {"train_model": 1}
    lines = log.read_text()
    assert f"training starts again: {states[0].relative_to(pipeline.folder)}" in lines
    assert "mlp, replicate 0: epochs: 0/4" in lines
    assert "mlp, replicate 1: epochs: 1/4" in lines
    assert "mlp, replicate 1: epochs: 0/4" not in lines
    assert_equal(pipeline, finished, TRAINED)
    assert list(scratch.iterdir()) == []


def test_jobs_killed_while_they_write(pipeline, finished):
    """Half of a table and of the second file of a figure are on disk when their jobs die."""
    remove(pipeline, THRESHOLDS, FIGURE, FIGURE.replace(".pdf", ".png"))
    faults = [
        pipeline.fault("collect_tables.py", "thresholds"),
        pipeline.fault("draw_figure.py", "recovery_mse.png"),
    ]
    options = ["--keep-going"]
    run = pipeline.run(THRESHOLDS, FIGURE, cores=2, options=options, faults=faults, fails=True)
    assert run.executed == {"collect_recovery": 1, "plot_recovery_mse": 1}
    for log in ("collect_recovery/thresholds.log", "plot_recovery_mse.log"):
        assert f"logs/faults/{log}" in run.output
    assert not (pipeline.folder / THRESHOLDS).exists()
    assert list(pipeline.figures.glob("[!.]*")) == []
    assert len(temporary_files(pipeline.results / "recovery")) == 1
    assert len(list(pipeline.figures.glob(".*"))) == 1

    run = pipeline.run(THRESHOLDS, FIGURE, cores=2, options=options)
    assert run.executed == {"collect_recovery": 1, "plot_recovery_mse": 1}
    assert_equal(pipeline, finished, THRESHOLDS, FIGURE, FIGURE.replace(".pdf", ".png"))
    assert temporary_files(pipeline.results) == list(pipeline.figures.glob(".*")) == []


def test_two_runs_at_once_a_polite_end_and_ctrl_c(pipeline, finished, tmp_path):
    remove(pipeline, METRICS, THRESHOLDS)
    mark = tmp_path / "metrics"
    waiting = pipeline.fault("collect_tables.py", "metrics", mark=mark)
    order = ["--prioritize", METRICS]
    first = pipeline.start(METRICS, CONFIG, options=order, faults=[waiting])
    job = first.job_at(mark)

    # The same files: refused, and the job goes on.
    second = pipeline.run(METRICS, fails=True)
    assert second.executed == {}
    assert "no other Snakemake process is trying to create the same files" in second.output
    assert "Traceback" not in second.output
    # Other files: both work.
    assert pipeline.run(THRESHOLDS).executed == {"collect_recovery": 1}
    assert psutil.Process(job).is_running()

    # SIGTERM to Snakemake: the running job is finished, no other is started.
    first.process.terminate()
    mark.unlink()
    assert first.wait() != 0
    assert first.executed == {"collect_recovery": 1}
    assert_equal(pipeline, finished, METRICS, THRESHOLDS)

    # Ctrl-C, to plain Snakemake.
    mark = tmp_path / "configuration"
    waiting = pipeline.fault("write_config.py", "config.yaml", mark=mark)
    first = pipeline.start(METRICS, CONFIG, faults=[waiting], by="-m snakemake")
    first.job_at(mark)
    first.signal(signal.SIGINT)
    assert first.wait() != 0
    assert first.executed == {"write_config": 1}
    assert not (pipeline.folder / CONFIG).exists()

    run = pipeline.run(METRICS, CONFIG)
    assert run.executed == {"write_config": 1}
    assert (pipeline.folder / CONFIG).exists()


def test_a_read_only_disk_and_then_a_full_one(pipeline, finished):
    results = pipeline.mount("results", size=4000)
    scratch = pipeline.mount("scratch", size=8)
    remove(pipeline, THRESHOLDS, TRAINED, HISTORY)
    targets = {"cores": 2, "options": ["--keep-going"]}

    pipeline.remount(results, "ro")
    run = pipeline.run(THRESHOLDS, TRAINED, fails=True, **targets)
    assert "results/ cannot be written (read-only?); nothing was started" in run.output
    assert "Traceback" not in run.output
    assert run.executed == {}

    pipeline.remount(results, "rw")
    with pytest.raises(OSError, match="No space left"):
        (results / "filler").write_bytes(bytes(8_000_000))
    run = pipeline.run(THRESHOLDS, TRAINED, fails=True, **targets)
    for log, file in (
        ("collect_recovery/thresholds.log", THRESHOLDS),
        ("train_model/mlp/seeds0-1.log", "scratch/training-"),
    ):
        for text in (run.output, (pipeline.logs / log).read_text()):
            assert f"error: {file}" in text
            assert "cannot be written" in text
            assert "No space left on device" in text
    assert "Traceback" not in run.output
    assert not (pipeline.folder / THRESHOLDS).exists()
    assert not (pipeline.folder / TRAINED).exists()
    assert temporary_files(results) == list(scratch.iterdir()) == []

    pipeline.remount(results, "size=20000k")
    pipeline.remount(scratch, "size=1000k")
    run = pipeline.run(THRESHOLDS, TRAINED, **targets)
    assert run.executed == {"collect_recovery": 1, "train_model": 1}
    assert_equal(pipeline, finished, THRESHOLDS, TRAINED)


def damage(path, change):
    """Change the bytes of a file but not its time, so that Snakemake does not see it."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_damaged_tables_and_checkpoints(pipeline, finished):
    remove(pipeline, THRESHOLDS)
    column = read_metadata(pipeline.folder / TEACHERS).row_group(0).column(0)
    end = column.data_page_offset + column.total_compressed_size  # of the values of a column

    def flip_a_bit(content):
        content[end - 2] ^= 1

    def cut_off(content):
        del content[len(content) // 2 :]

    damage(pipeline.folder / TEACHERS, flip_a_bit)
    damage(pipeline.folder / TRAINED, cut_off)
    targets = {"cores": 2, "options": ["--keep-going"]}
    run = pipeline.run(THRESHOLDS, MEASURED, fails=True, **targets)
    assert run.executed == {"collect_recovery": 1, "measure_curvature": 1}
    assert f"error: {TEACHERS}: " in run.output
    assert f"error: {TRAINED}: not a readable safetensors file" in run.output
    assert "Traceback" not in run.output
    assert not (pipeline.folder / THRESHOLDS).exists()
    assert not (pipeline.folder / MEASURED).exists()

    remove(pipeline, TEACHERS, TRAINED)
    run = pipeline.run(THRESHOLDS, MEASURED, **targets)
    assert run.executed == {
        "recover_features": 1,
        "collect_recovery": 1,
        "train_model": 1,
        "measure_curvature": 1,
    }
    assert_equal(pipeline, finished, TEACHERS, THRESHOLDS, TRAINED)
    sound = read_provenance(finished.folder / TRAINED)["content"]
    assert read_provenance(pipeline.folder / MEASURED)["inputs"][TRAINED] == sound


def test_no_room_for_the_records_of_snakemake(pipeline):
    records = pipeline.mount(".snakemake", size=2000)
    with pytest.raises(OSError, match="No space left"):
        (records / "filler").write_bytes(bytes(4_000_000))
    run = pipeline.run(THRESHOLDS, fails=True)
    assert f"{records}: No space left on device" in run.output
    assert len(run.output.splitlines()) == 1
    pipeline.remount(records, "ro")
    run = pipeline.run(THRESHOLDS, fails=True)
    assert f"{records}: Read-only file system" in run.output
    assert len(run.output.splitlines()) == 1


class Started(Exception):  # noqa: N818  (no error: run.py has become Snakemake)
    """Raised in place of becoming Snakemake."""


@pytest.fixture
def run_script(root, tmp_path, monkeypatch):
    """workflow/run.py as a module, in a folder that a killed run has left locked."""
    specification = importlib.util.spec_from_file_location("run", root / "workflow/run.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (tmp_path / "Snakefile").touch()
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    (tmp_path / "bin").mkdir()

    def become(program, command):
        raise Started

    monkeypatch.setattr(module.os, "execv", become)

    def start(*arguments):
        monkeypatch.setattr(module.sys, "argv", ["run.py", *arguments])
        with pytest.raises((Started, SystemExit)) as ended:
            module.main()
        return ended.value

    return start


def program(folder, name, text):
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("option", ["--dry-run", "--dryrun", "-n", "-np"])
def test_a_dry_run_leaves_a_lock_alone(run_script, tmp_path, option):
    assert isinstance(run_script(option), Started)
    assert len(list((tmp_path / ".snakemake/locks").iterdir())) == 1
    assert not (tmp_path / ".snakemake/run.lock").exists()


def test_a_configuration_that_cannot_be_read_is_one_line(run_script, tmp_path):
    for content in ("seed: 3\nseed: 4", "a: &a {b: *a}"):
        (tmp_path / "mine.yaml").write_text(content)
        message = str(run_script("-n", "--configfile", "mine.yaml"))
        assert message.startswith("error: mine.yaml: not plain YAML (")
        assert len(message.splitlines()) == 1
    message = str(run_script("--configfile", "mine.yaml", "results/x"))
    assert "targets come first" in message


@pytest.mark.parametrize("options", [(), ("-n",)])
@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("place", ["file", "/proc/none"])  # permissions do not stop root
def test_a_home_that_cannot_be_written_is_named(
    run_script, tmp_path, monkeypatch, variable, place, options
):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / place))
    (tmp_path / "file").touch()
    message = str(run_script(*options))
    assert message.startswith(str(tmp_path / place))
    assert "nothing was started" in message
    assert len(message.splitlines()) == 1
    assert not (tmp_path / ".snakemake/run.lock").exists()


def test_the_lock_of_a_living_run_protects_snakemakes(run_script, tmp_path):
    lock = tmp_path / ".snakemake/run.lock"
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_SH);"
        "print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alive:
        assert alive.stdout.readline() == b"held\n"
        assert isinstance(run_script(), Started)
        assert len(list((tmp_path / ".snakemake/locks").iterdir())) == 1
        alive.kill()


def test_a_lock_of_another_machine_is_left_alone(run_script, tmp_path):
    (tmp_path / ".snakemake/run.lock").write_text("elsewhere")
    ended = run_script()
    assert "started on elsewhere" in str(ended)
    assert len(list((tmp_path / ".snakemake/locks").iterdir())) == 1
    assert (tmp_path / ".snakemake/run.lock").read_text() == "elsewhere"


def test_a_snakemake_that_was_started_without_it_keeps_its_lock(run_script, tmp_path):
    command = [sys.executable, "-c", "input()", "snakemake", "--cores", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as alive:
        assert isinstance(run_script(), Started)
        assert len(list((tmp_path / ".snakemake/locks").iterdir())) == 1
        alive.communicate(b"\n")


def test_cluster_jobs_of_this_folder_are_cancelled(run_script, tmp_path):
    program(
        tmp_path,
        "squeue",
        f"test -e {tmp_path}/cancelled || echo '7 spectral-laws_1 {tmp_path}';"
        f"echo '8 spectral-laws_1 {tmp_path}/other';"
        f"echo '9 spectral-laws_1 /'; echo '10 my_shell {tmp_path}'",
    )
    program(tmp_path, "scancel", f"echo $* >> {tmp_path}/cancelled")
    assert isinstance(run_script(), Started)
    assert (tmp_path / "cancelled").read_text() == "7\n"
    assert list((tmp_path / ".snakemake/locks").iterdir()) == []


def test_a_cluster_that_does_not_answer_is_no_obstacle(run_script, tmp_path, capsys):
    program(tmp_path, "squeue", "exit 1")
    assert isinstance(run_script(), Started)
    assert "SLURM does not say" in capsys.readouterr().err
    assert list((tmp_path / ".snakemake/locks").iterdir()) == []


def test_a_network_file_system_that_shows_files_late(pipeline, finished):
    remove(pipeline, METRICS, FIGURE)
    late = pipeline.fault("collect_tables.py", "metrics.parquet", late=2)
    run = pipeline.run(FIGURE, faults=[late])
    assert run.executed == {"collect_recovery": 1, "plot_recovery_mse": 1}
    assert_equal(pipeline, finished, METRICS, FIGURE)
    # Later than Snakemake waits: the job counts as failed, and the same command goes on.
    remove(pipeline, METRICS, FIGURE)
    late = pipeline.fault("collect_tables.py", "metrics.parquet", late=6)
    run = pipeline.run(FIGURE, fails=True, faults=[late], options=["--latency-wait", "1"])
    assert "--latency-wait" in run.output
    assert "metrics.parquet" in run.output
    pipeline.run(FIGURE)
    assert_equal(pipeline, finished, METRICS, FIGURE)
