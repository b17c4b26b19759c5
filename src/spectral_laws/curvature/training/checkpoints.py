"""A network's weights and buffers as named arrays, and back."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from spectral_laws.artifacts import check_finite, read_arrays
from spectral_laws.errors import DataError

Arrays = dict[str, NDArray[Any]]

_INDEX = r"(0|[1-9][0-9]{0,8})"
_PACKED = re.compile(rf"{_INDEX}/{_INDEX}/(.+)", re.DOTALL)


def model_arrays(model: nn.Module) -> Arrays:
    """The model's state dictionary as arrays, for :func:`spectral_laws.artifacts.write_arrays`."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()}


def check_model_arrays(
    model: nn.Module, arrays: Mapping[str, NDArray[Any]], *, source: str
) -> None:
    """Check that arrays are a state dictionary of the model."""
    expected = model.state_dict()
    problems = [f"{name}: missing" for name in expected if name not in arrays]
    problems += [f"{name}: not in this model" for name in arrays if name not in expected]
    for name, tensor in expected.items():
        array = arrays.get(name)
        if array is not None and (
            array.shape != tuple(tensor.shape) or str(array.dtype) != _name(tensor.dtype)
        ):
            problems.append(
                f"{name}: {array.dtype} {array.shape}, expected "
                f"{_name(tensor.dtype)} {tuple(tensor.shape)}"
            )
    if problems:
        raise DataError(f"{source}: does not fit the model\n  " + "\n  ".join(_shorten(problems)))


def load_model_arrays(model: nn.Module, arrays: Mapping[str, NDArray[Any]], *, source: str) -> None:
    """Copy arrays into the model, on whatever device it is."""
    check_model_arrays(model, arrays, source=source)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def load_checkpoint(model: nn.Module, path: Path) -> None:
    """Load a safetensors file that holds one state dictionary.

    Raises:
        DataError: if the file is missing, damaged or does not fit the model.
        NumericalError: if a weight is NaN or infinite.
    """
    arrays = read_arrays(path)
    for name, array in arrays.items():
        check_finite(f"{path}: array {name!r}", array)
    load_model_arrays(model, arrays, source=str(path))


def pack_networks(networks: Mapping[tuple[int, int], Mapping[str, NDArray[Any]]]) -> Arrays:
    """Networks by (replicate, epoch) as one set of arrays, ``<replicate>/<epoch>/<name>``."""
    return {
        f"{replicate}/{epoch}/{name}": array
        for (replicate, epoch), arrays in networks.items()
        for name, array in arrays.items()
    }


def read_networks(path: Path) -> dict[tuple[int, int], Arrays]:
    """The networks of a file of :func:`pack_networks`, by (replicate, epoch), sorted."""
    networks: dict[tuple[int, int], Arrays] = {}
    for key, array in read_arrays(path).items():
        found = _PACKED.fullmatch(key)
        if found is None:
            raise DataError(f"{path}: array {key!r} is not of the form replicate/epoch/name")
        check_finite(f"{path}: array {key!r}", array)
        networks.setdefault((int(found[1]), int(found[2])), {})[found[3]] = array
    if not networks:
        raise DataError(f"{path}: holds no network")
    return dict(sorted(networks.items()))


def last_epochs(networks: Mapping[tuple[int, int], object]) -> dict[int, int]:
    """The last epoch of every replicate."""
    last: dict[int, int] = {}
    for replicate, epoch in networks:
        last[replicate] = max(epoch, last.get(replicate, epoch))
    return last


def _name(dtype: torch.dtype) -> str:
    """Of a torch type as numpy calls it; numpy has types that torch has not, and the reverse."""
    return str(dtype).removeprefix("torch.")


def _shorten(problems: list[str], limit: int = 12) -> list[str]:
    if len(problems) <= limit:
        return problems
    return [*problems[:limit], f"... and {len(problems) - limit} more"]
