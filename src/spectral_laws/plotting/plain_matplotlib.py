"""Matplotlib as it comes, whatever backend or settings the surroundings ask for."""

import contextlib
import os
from importlib.util import find_spec
from pathlib import Path


def import_plainly() -> None:
    """Import matplotlib without ``MPLBACKEND`` and with its own matplotlibrc.

    Figures use no backend and matplotlib's defaults; but an unknown backend, or a matplotlibrc
    that cannot be read, in the current folder or the user's, would stop the import itself. Where
    matplotlib has been imported before, it is left as it is.
    """
    spec = find_spec("matplotlib")
    folder = Path(spec.origin).parent / "mpl-data" if spec and spec.origin else Path()
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        with contextlib.chdir(folder):  # matplotlib looks for a matplotlibrc here first
            import matplotlib  # noqa: F401
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
