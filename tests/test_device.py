import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from spectral_laws import device
from spectral_laws.device import find_device
from spectral_laws.errors import ConfigError

# A process that claims one of N pretended GPUs, says which, and stays until its input is closed.
HOLDER = """
import sys
from types import SimpleNamespace
import torch

n_gpus = int(sys.argv[1])
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: n_gpus
torch.cuda.get_device_properties = lambda gpu: SimpleNamespace(uuid=f"pretended-{gpu}")
chosen = []
torch.cuda.set_device = chosen.append

from spectral_laws.device import find_device

assert [str(find_device("cuda")) for call in range(2)] == ["cuda", "cuda"]
assert chosen[0] == chosen[1]
print(chosen[0], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that holds one of `n_gpus` pretended GPUs."""
    started = []

    def start(n_gpus):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(n_gpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_says_what_to_change():
    with pytest.raises(ConfigError, match="set `device: cpu`"):
        find_device("cuda")


def test_a_known_device_is_found_and_another_is_refused():
    assert find_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="found 'tpu'"):
        find_device("tpu")


@pytest.mark.slow
def test_processes_get_distinct_gpus_and_a_killed_one_frees_its_own(hold):
    holders = [hold(2), hold(2)]
    gpus = [int(holder.stdout.readline()) for holder in holders]
    assert sorted(gpus) == [0, 1]

    third = hold(2)
    assert third.stderr.readline() == "waiting for one of 2 GPUs, all in use\n"
    holders[1].kill()
    assert int(third.stdout.readline()) == gpus[1]


@pytest.mark.slow
def test_the_only_gpu_is_taken_without_waiting(hold):
    assert [hold(1).stdout.readline() for process in range(2)] == ["0\n", "0\n"]


def test_a_lock_is_the_same_under_another_index(tmp_path, monkeypatch):
    def processes_see(*identities):
        monkeypatch.setattr(
            torch.cuda,
            "get_device_properties",
            lambda gpu: SimpleNamespace(uuid=identities[gpu]),
        )

    monkeypatch.setattr(device.tempfile, "gettempdir", lambda: str(tmp_path))
    processes_see("a", "b")
    held = device._lock_file(1)
    processes_see("b")
    assert device._lock_file(0) == held
