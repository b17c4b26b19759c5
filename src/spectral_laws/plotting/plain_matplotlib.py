"""Matplotlib as it comes, whatever backend or settings the surroundings ask for."""

import contextlib
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def import_plainly() -> bool:
    """Import matplotlib without ``MPLBACKEND`` and with its own matplotlibrc; whether it is there.

    Figures use no backend and matplotlib's defaults; but an unknown backend, or a matplotlibrc
    that cannot be read, in the current folder or the user's, would stop the import itself. Where
    matplotlib has been imported before, it is left as it is.
    """
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        return False
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        # Matplotlib looks for a matplotlibrc in the current folder first.
        with contextlib.chdir(Path(spec.origin).parent / "mpl-data"):
            import_module("matplotlib")
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    return True
