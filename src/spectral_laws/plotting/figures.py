"""Any figure by its name."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.figure_registry import module_name, module_path


def draw_figure(name: str, /, **arguments: Any) -> Figure:  # noqa: ANN401
    """Draw ``curvature_triangle``, say, from its tables and with its parameters.

    Args:
        name: of the figure, as in ``figures.yaml``.
        arguments: of the drawing function: tables by name, and parameters that have other values
            than by default.

    Raises:
        DataError: if there is no such figure, a table is missing or not what it should be, or an
            argument is unknown.
    """
    if not module_path(name).is_file():
        raise DataError(f"there is no figure {name!r}")
    draw: Callable[..., Figure] = import_module(module_name(name)).draw
    try:
        inspect.signature(draw).bind(**arguments)
    except TypeError as error:
        raise DataError(f"figure {name}: {error}") from None
    return draw(**arguments)
