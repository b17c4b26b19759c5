"""Training and test samples of one data set, in memory and on disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite, read_arrays
from spectral_laws.errors import DataError, NumericalError

Inputs = NDArray[np.float32] | NDArray[np.int64]
Targets = NDArray[np.int64]

_REQUIRED = {"train_inputs", "train_targets", "test_inputs", "test_targets", "n_classes"}


@dataclass(frozen=True)
class Samples:
    """Inputs and targets of a training and a test part.

    Attributes:
        train_inputs: images (N, channels, S, S) float32, or tokens (N, T) int64.
        train_targets: int64 below ``n_classes``: (N,) the class of each sample, or (N, T) the
            token after each token.
        test_inputs: as ``train_inputs``, same shape but for N.
        test_targets: as ``train_targets``.
        n_classes: number of classes; of language modelling, the vocabulary.
        n_tokens: vocabulary of token inputs; None for images.

    Raises:
        DataError: if shapes, dtypes or ranges are not so.
        NumericalError: if an image has NaN or infinite values.
    """

    train_inputs: Inputs
    train_targets: Targets
    test_inputs: Inputs
    test_targets: Targets
    n_classes: int
    n_tokens: int | None = None

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            inputs, targets = getattr(self, f"{part}_inputs"), getattr(self, f"{part}_targets")
            if self.n_tokens is None:
                _check_images(f"{part}_inputs", inputs)
            else:
                _check_tokens(f"{part}_inputs", inputs, self.n_tokens)
            _check_targets(f"{part}_targets", targets, inputs, self.n_classes)
        if self.train_inputs.shape[1:] != self.test_inputs.shape[1:]:
            raise DataError("train_inputs and test_inputs differ in their shape behind the first")
        if self.train_targets.ndim != self.test_targets.ndim:
            raise DataError("train_targets and test_targets belong to different tasks")
        if self.task == "language_modelling" and self.n_classes != self.n_tokens:
            raise DataError(
                f"n_classes {self.n_classes} is not the vocabulary, {self.n_tokens}, though every "
                "position has a target"
            )

    @property
    def is_language(self) -> bool:
        """Whether inputs are tokens."""
        return self.n_tokens is not None

    @property
    def task(self) -> Literal["language_modelling", "classification"]:
        """What the targets are: the next token at each position, or one class per sample."""
        return "language_modelling" if self.train_targets.ndim == 2 else "classification"

    @property
    def in_channels(self) -> int:
        """Channels of an image."""
        return self._image_shape()[0]

    @property
    def image_size(self) -> int:
        """Pixels a side."""
        return self._image_shape()[1]

    @property
    def context(self) -> int:
        """Tokens of a sample, T."""
        if not self.is_language:
            raise ValueError("these samples are images, they have no context")
        return int(self.train_inputs.shape[1])

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """The content as named arrays, for :func:`spectral_laws.artifacts.write_arrays`."""
        arrays: dict[str, NDArray[Any]] = {
            "train_inputs": self.train_inputs,
            "train_targets": self.train_targets,
            "test_inputs": self.test_inputs,
            "test_targets": self.test_targets,
            "n_classes": np.array([self.n_classes], dtype=np.int64),
        }
        if self.n_tokens is not None:
            arrays["n_tokens"] = np.array([self.n_tokens], dtype=np.int64)
        return arrays

    @classmethod
    def read(cls, path: Path) -> "Samples":
        """Read the file that holds :meth:`as_arrays`."""
        arrays: Mapping[str, NDArray[Any]] = read_arrays(path)
        if set(arrays) - {"n_tokens"} != _REQUIRED:
            raise DataError(
                f"{path}: arrays {sorted(arrays)}, expected {sorted(_REQUIRED)}, "
                "and n_tokens where inputs are tokens"
            )
        numbers: dict[str, int] = {}
        for name in sorted({"n_classes", "n_tokens"} & set(arrays)):
            if arrays[name].size != 1 or arrays[name].dtype != np.int64:
                raise DataError(f"{path}: {name} holds {arrays[name].size} numbers, not one int64")
            numbers[name] = int(arrays[name].item())
        try:
            return cls(
                arrays["train_inputs"],
                arrays["train_targets"],
                arrays["test_inputs"],
                arrays["test_targets"],
                numbers["n_classes"],
                numbers.get("n_tokens"),
            )
        except (DataError, NumericalError) as error:
            raise type(error)(f"{path}: {error}") from None

    def _image_shape(self) -> tuple[int, int]:
        if self.is_language:
            raise ValueError("these samples are tokens, not images")
        return int(self.train_inputs.shape[1]), int(self.train_inputs.shape[2])


def _check_images(name: str, inputs: NDArray[Any]) -> None:
    square = inputs.ndim == 4 and inputs.shape[2] == inputs.shape[3]
    if not square or not inputs.size or inputs.dtype != np.float32:
        raise DataError(
            f"{name}: expected float32 (N, channels, S, S), not empty, found {inputs.dtype} "
            f"{inputs.shape}"
        )
    check_finite(name, inputs)


def _check_tokens(name: str, inputs: NDArray[Any], n_tokens: int) -> None:
    if inputs.ndim != 2 or not inputs.size or inputs.dtype != np.int64:
        raise DataError(f"{name}: expected int64 (N, T), found {inputs.dtype} {inputs.shape}")
    if inputs.min() < 0 or inputs.max() >= n_tokens:
        raise DataError(f"{name}: some tokens lie outside 0..{n_tokens - 1}")


def _check_targets(name: str, targets: NDArray[Any], inputs: NDArray[Any], n_classes: int) -> None:
    shapes = [inputs.shape[:1], inputs.shape] if inputs.ndim == 2 else [inputs.shape[:1]]
    if targets.shape not in shapes or targets.dtype != np.int64 or not targets.size:
        raise DataError(
            f"{name}: expected int64 {' or '.join(map(str, shapes))}, not empty, found "
            f"{targets.dtype} {targets.shape}"
        )
    if targets.min() < 0 or targets.max() >= n_classes:
        raise DataError(f"{name}: some lie outside 0..{n_classes - 1}")
