"""Choice of the torch device."""

import torch

from spectral_laws.errors import ConfigError


def find_device(name: str) -> torch.device:
    """The device called ``name``, ``cpu`` or ``cuda``.

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
    return torch.device(name)
