"""A real SLURM on one machine, for tests: one node with two CPUs and two pretended GPUs.

Started as root and taken down again, whatever happens in between. Both partitions are on the same
node, so that never more than two CPUs are busy.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["munged", "slurmctld", "slurmd", "scontrol", "sbatch", "srun", "squeue", "scancel"]
PARTS = ["Snakefile", "config.yaml", "config", "workflow", "profiles", "src"]
ETC = Path("/etc/slurm")  # jobs of the plugin look nowhere else
OURS = "# made by tests/cluster, which removes it again\n"

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/log/jobcomp.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
MailProg=/bin/true
KillWait=2
MinJobAge=3600
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
GresTypes=gpu
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=16818 \\
  CPUs={cpus} RealMemory=32000 Gres=gpu:2 State=UNKNOWN
PartitionName=cpu Nodes=n1 Default=YES MaxTime=2880 State=UP
PartitionName=gpu Nodes=n1 Default=NO MaxTime=2880 State=UP
"""
GPUS = """\
NodeName=n1 Name=gpu File=/dev/null
NodeName=n1 Name=gpu File=/dev/zero
"""


def why_not() -> str | None:
    """What this machine lacks to run the cluster, if anything."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if missing:
        return f"no {', '.join(missing)}: `apt-get install slurm-wlm munge`"
    if os.getuid() != 0:
        return "SLURM's daemons are started as root"
    if find_spec("snakemake_executor_plugin_slurm") is None:
        return "Snakemake's plugin for SLURM is missing: `pip install '.[cluster]'`"
    return None


def wait_for(condition, *, seconds, what):
    """Poll until `condition()` is true and return its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return value


def copy_project(folder: Path) -> Path:
    """A copy of the pipeline in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    return folder


def write_profile(folder: Path, **settings) -> Path:
    """A profile to be given after profiles/slurm: what such a small and quick cluster needs."""
    profile = folder / "quick" / "config.yaml"
    profile.parent.mkdir(exist_ok=True)
    quick = {
        "slurm-status-command": "squeue",  # sacct hangs where there is no accounting
        "slurm-init-seconds-before-status-checks": 1,
        "latency-wait": 10,
    }
    profile.write_text(yaml.safe_dump(quick | settings))
    return profile.parent


def _fields(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Cluster:
    """The running SLURM, as a context manager."""

    def __enter__(self):
        self._lock = open("/run/lock/spectral-laws-slurm", "w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # the ports are those of one cluster per machine
        self._files = {ETC / "slurm.conf": CONFIGURATION, ETC / "gres.conf": GPUS}
        for path in self._files:
            if path.exists() and not path.read_text().startswith(OURS):
                raise RuntimeError(f"{path} is not made by these tests: SLURM is in use here")
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        for name in ["munge", "run", "log", "spool", "state"]:
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        ETC.mkdir(exist_ok=True)
        cpus = min(2, os.cpu_count() or 1)
        for path, text in self._files.items():
            path.write_text(OURS + text.format(folder=self.folder, cpus=cpus))
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        files = [
            f"--key-file={munge}/key",
            f"--socket={munge}/munge.sock",
            f"--pid-file={self.folder}/run/munged.pid",
            f"--log-file={self.folder}/log/munged.log",
            f"--seed-file={munge}/seed",
        ]
        self.run("munged", *files)
        self.run("slurmctld")
        self.run("slurmd", "-N", "n1")
        ready = ["sinfo", "--noheader", "--Node", "--format=%T"]
        try:
            wait_for(
                lambda: set(self._try(*ready).split()) == {"idle"}, seconds=30, what="node is idle"
            )
        except TimeoutError as error:
            logs = [path.read_text()[-2000:] for path in sorted((self.folder / "log").iterdir())]
            raise RuntimeError("\n".join([str(error), *logs])) from None

    def __exit__(self, *_):
        if self._try("scancel", "--user=root") is not None:
            try:
                wait_for(lambda: not self.jobs("%i"), seconds=30, what="no job left")
            except (TimeoutError, subprocess.CalledProcessError) as error:
                print(error, file=sys.stderr)
        # slurmd before slurmctld, munged last: each still needs the next one to end.
        for name in ["slurmd", "slurmctld", "munged"]:
            self._stop(self.folder / "run" / f"{name}.pid")
        for path in self._files:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    @staticmethod
    def _stop(pid_file):
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text())
        for number in [signal.SIGTERM, signal.SIGKILL]:
            try:
                os.kill(pid, number)
                wait_for(lambda: not Path(f"/proc/{pid}").exists(), seconds=10, what=f"{pid} ends")
                return
            except ProcessLookupError:
                return
            except TimeoutError:
                continue

    def run(self, *command) -> str:
        """The output of a command."""
        environment = os.environ | {"PATH": _path()}
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=60, env=environment
        ).stdout

    def _try(self, *command) -> str:
        try:
            return self.run(*command)
        except subprocess.CalledProcessError:
            return ""

    def jobs(self, columns: str, states: str = "pending,running,completing") -> list[list[str]]:
        """Columns of squeue, of the jobs in some states."""
        lines = self.run("squeue", "--noheader", f"--states={states}", f"--format={columns}")
        return [line.split() for line in lines.splitlines()]

    def finished(self) -> list[dict[str, str]]:
        """Every job that ended: the completion log's fields, `Comment` (the rule) and `Gres`."""
        log = self.folder / "log" / "jobcomp.log"
        lines = log.read_text().splitlines() if log.exists() else []
        known = {}
        for line in self.run("scontrol", "show", "jobs", "--oneliner").splitlines():
            job = _fields(line)
            known[job["JobId"]] = {"Comment": job["Comment"], "Gres": job.get("TresPerJob", "")}
        return [job | known[job["JobId"]] for job in map(_fields, lines)]
