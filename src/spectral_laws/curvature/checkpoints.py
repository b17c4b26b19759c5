"""A network's weights and buffers as named arrays, and back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from spectral_laws.artifacts import read_arrays
from spectral_laws.errors import DataError


def model_arrays(model: nn.Module) -> dict[str, NDArray[Any]]:
    """The model's state dictionary as arrays, for :func:`spectral_laws.artifacts.write_arrays`."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()}


def load_model_arrays(model: nn.Module, arrays: Mapping[str, NDArray[Any]], *, source: str) -> None:
    """Copy arrays into the model, on whatever device it is.

    Raises:
        DataError: naming ``source`` and every missing, unexpected or wrongly shaped array; the
            model is then unchanged.
    """
    expected = model.state_dict()
    problems = [f"{name}: missing" for name in expected if name not in arrays]
    problems += [f"{name}: not in this model" for name in arrays if name not in expected]
    for name, tensor in expected.items():
        array = arrays.get(name)
        if array is not None and (
            array.shape != tuple(tensor.shape) or torch.from_numpy(array).dtype != tensor.dtype
        ):
            problems.append(
                f"{name}: {array.dtype} {array.shape}, expected "
                f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
            )
    if problems:
        raise DataError(f"{source}: does not fit the model\n  " + "\n  ".join(_shorten(problems)))
    model.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def load_checkpoint(model: nn.Module, path: Path) -> None:
    """Load a safetensors checkpoint written from :func:`model_arrays`.

    Raises:
        DataError: if the file is missing, damaged or does not fit the model.
    """
    load_model_arrays(model, read_arrays(path), source=str(path))


def _shorten(problems: list[str], limit: int = 12) -> list[str]:
    if len(problems) <= limit:
        return problems
    return [*problems[:limit], f"... and {len(problems) - limit} more"]
