"""Run Snakemake with the arguments given, resuming an interrupted run.

    python workflow/run.py --cores 2 [targets and options of snakemake]

Snakemake locks the folder while it runs. A run that was killed (`kill -9`, a power cut, a closed
terminal) leaves its lock, and perhaps jobs that nobody waits for any more. If such a lock is there
and no run is alive, this stops those jobs, removes the lock and starts Snakemake; finished files
stay, a training goes on from its last epoch. If a run is alive, Snakemake decides: two runs may
work side by side on different files, and one that wants the same files is refused. A dry run
changes nothing and looks at no lock.
"""

import argparse
import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from platformdirs import user_cache_path

from spectral_laws.errors import ConfigError
from spectral_laws.settings.yaml_files import read_yaml

STATE = Path(".snakemake")
ROOM = 1_000_000  # bytes that Snakemake needs for its own records
# Dry runs, also among other short options, as in -np, and what only tells something.
DRY = re.compile(
    r"--dry-?run|-[a-zA-Z]*n[a-zA-Z]*|-h|--help|-v|--version|--summary|--list.*|--lint"
)
JOB_NAME = "spectral-laws_"  # slurm-jobname-prefix of profiles/slurm


def main() -> None:
    """Take our own lock, clean up after a dead run, and become Snakemake, which keeps the lock."""
    if not Path("Snakefile").exists():
        sys.exit("there is no Snakefile here: run this from the project's own folder")
    check_configuration(sys.argv[1:])
    cache = user_cache_path("snakemake", "snakemake") / "snakemake" / "source-cache"
    check_room(cache, "copies of the rules there; XDG_CACHE_HOME may name another place")
    if not any(map(DRY.fullmatch, sys.argv[1:])):
        check_room(STATE.resolve(), "its records there")
        os.set_inheritable(take_lock(), True)
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *sys.argv[1:]])


def check_configuration(arguments: list[str]) -> None:
    """Read the configuration files of the command line: Snakemake has tracebacks for wrong ones."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    names = ("--configfile", "--configfiles")
    parser.add_argument(*names, nargs="+", action="extend", type=Path, default=[], dest="files")
    try:
        files = parser.parse_known_args(arguments)[0].files
        for path in files:
            read_yaml(path)
    except ConfigError as error:
        hint = " (--configfile takes every word after it; targets come first)" * (len(files) > 1)
        sys.exit(f"error: {error}{hint}")


def check_room(folder: Path, what: str) -> None:
    """Stop where Snakemake would end in a traceback: a folder of its own cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        sys.exit(f"{folder}: {error.strerror}; nothing was started: Snakemake keeps {what}")


def take_lock() -> int:
    """The file whose lock says that a run is alive; what a dead run has left is cleaned up."""
    # The kernel drops this lock when the process that holds it ends, however it ends.
    lock = os.open(STATE / "run.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # a run is alive
    except OSError as error:
        print(
            f"{STATE}: no file locks here ({error.strerror}); nothing is cleaned up",
            file=sys.stderr,
        )
        return lock
    else:
        if any((STATE / "locks").glob("*")) and not snakemake_runs_here():
            clean_up(os.read(lock, 1000).decode(errors="replace"))
        os.truncate(lock, 0)
        os.pwrite(lock, platform.node().encode(), 0)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def snakemake_runs_here() -> bool:
    """Whether a Snakemake that was started without this script is at work in this folder."""
    return any(
        process.info["cwd"] == str(Path.cwd())
        and is_snakemake(process.info["cmdline"])
        # Snakemake starts itself with --mode for a job, and SLURM may run it on this machine.
        and "--mode" not in process.info["cmdline"]
        for process in psutil.process_iter(["cmdline", "cwd"])
    )


def clean_up(host: str) -> None:
    """Stop the jobs of a run that was killed, and remove its lock."""
    if host not in ("", platform.node()):
        sys.exit(
            f"a run that was started on {host} has not ended well; this machine is called "
            f"{platform.node()}. If that is the same one under a new name, delete "
            f"{STATE / 'locks'} and start again. Else start this on {host}, where it can be known "
            "whether it still runs; if it is gone for good, cancel its SLURM jobs first "
            "(docs/cluster.md)"
        )
    for file in (STATE / "locks").glob("*"):
        if file.stat().st_uid != os.getuid():
            sys.exit(f"{file}: the run of another user, who alone can know whether it is dead")
    stop_processes(orphans())
    cancel_cluster_jobs()
    for file in (STATE / "locks").glob("*"):
        file.unlink(missing_ok=True)
    print("removed the lock of a run that was killed; going on", file=sys.stderr)


def orphans() -> list[psutil.Process]:
    """Job processes in this folder whose Snakemake is gone: the shell of a job and its scripts."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "uids"]):
        mine = process.info["uids"] and process.info["uids"].real == os.getuid()
        here = process.info["cwd"] == str(Path.cwd())
        if not (mine and here and is_job_shell(process.info["cmdline"])):
            continue
        with suppress(psutil.Error):  # it may end at any time
            parent = process.parent()
            if parent is None or not is_snakemake(parent.cmdline()):
                found += [process, *process.children(recursive=True)]
    return found


def is_job_shell(command: list[str] | None) -> bool:
    """Whether this is a shell as Snakemake starts one per job, in bash's strict mode."""
    return bool(
        command
        and "-c" in command[:-1]
        and command[-1].startswith("set -euo pipefail;")
        and "workflow/scripts/" in command[-1]
    )


def is_snakemake(command: list[str] | None) -> bool:
    """Whether this is Snakemake itself: `python .../snakemake ...` or `python -m snakemake ...`."""
    words = [Path(part).name for part in (command or [])[:10]]
    return "snakemake" in words[1:] and words[0].startswith("python")


def stop_processes(processes: list[psutil.Process]) -> None:
    """Ask processes to end, and kill those that have not after ten seconds."""
    for process in processes:
        print(f"stopping job process {process.pid} of a run that was killed", file=sys.stderr)
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=10)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=10)


def cancel_cluster_jobs() -> None:
    """Cancel this user's jobs that profiles/slurm submitted from this folder, and see them end."""
    if shutil.which("squeue") is None:
        return
    try:
        left = cluster_jobs()
        for job in left:
            print(f"cancelling SLURM job {job} of a run that was killed", file=sys.stderr)
            subprocess.run(["scancel", job], timeout=60)  # it may have ended by now
        for _ in range(60):
            if not set(left) & set(cluster_jobs()):
                return
            time.sleep(1)
        print(f"SLURM jobs {', '.join(left)} do not end; going on", file=sys.stderr)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(
            f"SLURM does not say whether jobs of the killed run are left: {error}; if they are, "
            "stop this run, cancel them (docs/cluster.md) and start again",
            file=sys.stderr,
        )


def cluster_jobs() -> list[str]:
    """Ids of this user's jobs that profiles/slurm submitted from this folder."""
    command = ["squeue", "--noheader", "--user", str(os.getuid()), "--format", "%A %j %Z"]
    listed = subprocess.run(
        command, capture_output=True, check=True, text=True, errors="replace", timeout=60
    )
    jobs = [line.strip().split(" ", 2) for line in listed.stdout.splitlines()]
    here = str(Path.cwd())
    return [job for job, name, folder in jobs if name.startswith(JOB_NAME) and folder == here]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
