"""Choice of the torch device; jobs that run side by side get distinct GPUs."""

import fcntl
import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import torch

from spectral_laws.errors import ConfigError, DataError

# Locks of the claimed GPUs, open until the process ends; the kernel frees them even after kill -9.
_HELD: list[int] = []


def require_device(name: str) -> None:
    """Check that there is a device called ``name``, ``cpu`` or ``cuda``, without claiming one.

    Raises:
        ConfigError: if the name is another one, or CUDA is asked for and absent.
    """
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device: must be cpu or cuda, found {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device: cuda is not available to this PyTorch; set `device: cpu` in the "
            "configuration, or install a CUDA build of PyTorch on a machine with a GPU"
        )


def find_device(name: str) -> torch.device:
    """The device called ``name``, ``cpu`` or ``cuda``.

    With ``cuda``, the first call of a process claims one of the GPUs that it can see, makes it the
    current one and keeps it until the process ends. If all are claimed by other processes of the
    same user, it waits. A process that sees a single GPU (a job of a cluster) takes that one.

    Raises:
        ConfigError: if the name is another one, or CUDA is asked for and absent.
    """
    require_device(name)
    if name == "cuda":
        torch.cuda.set_device(_claimed_gpu())
    # Without an index it is the current GPU: names of scratch files must not depend on which it is.
    return torch.device(name)


@cache
def _claimed_gpu() -> int:
    """Index of a visible GPU that no other process of this user holds."""
    locks = [_lock_file(gpu) for gpu in range(torch.cuda.device_count())]
    if not locks:
        raise ConfigError("device: no GPU is visible to cuda (CUDA_VISIBLE_DEVICES?)")
    waiting = False
    while True:
        for gpu, lock in enumerate(locks):
            if _try_lock(lock):
                return gpu
        if len(locks) == 1:  # nothing to choose from: whoever gave it has decided
            return 0
        if not waiting:
            print(f"waiting for one of {len(locks)} GPUs, all in use", file=sys.stderr, flush=True)
            waiting = True
        time.sleep(1.0)


def _lock_file(gpu: int) -> Path:
    """The file whose lock means that a GPU is taken, named by what the GPU is called everywhere.

    The index alone would do only where CUDA_VISIBLE_DEVICES is the same for all processes.
    """
    identity = torch.cuda.get_device_properties(gpu).uuid
    return Path(tempfile.gettempdir(), f"spectral-laws-{os.getuid()}-gpu-{identity}.lock")


def _try_lock(path: Path) -> bool:
    """Lock a file for the rest of this process, if nobody holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    except OSError as error:
        raise DataError(f"{path}: cannot claim a GPU by this file ({error.strerror})") from None
    _HELD.append(descriptor)
    return True
