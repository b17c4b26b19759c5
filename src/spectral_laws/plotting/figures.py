"""Any figure by its name."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.figure_registry import load_figures, module_name
from spectral_laws.tables.schemas import check_table


def draw_figure(name: str, /, **arguments: Any) -> Figure:  # noqa: ANN401
    """Draw ``curvature_triangle``, say, from its tables and with its parameters.

    Args:
        name: of the figure, as in ``figures.yaml``.
        arguments: of the drawing function: tables by name, and parameters that have other values
            than by default.

    Raises:
        DataError: if there is no such figure, a table is missing or not what it should be, or an
            argument is unknown; or if what is drawn is not in the tables.
        NumericalError: if a value is NaN or infinite, or not positive where its logarithm is taken.
    """
    figure = load_figures().get(name)
    if figure is None:
        raise DataError(f"there is no figure {name!r}; there are {', '.join(load_figures())}")
    draw: Callable[..., Figure] = import_module(module_name(name)).draw
    try:
        inspect.signature(draw).bind(**arguments)
    except TypeError as error:
        raise DataError(f"figure {name}: {error}") from None
    for table in figure.tables:
        rows = arguments[table.split("/")[-1]]
        check_table(rows, table if "/" in table else f"claims/{table}")
        if rows.empty:
            raise DataError(f"{table} table: no rows, nothing to draw")
    return draw(**arguments)
