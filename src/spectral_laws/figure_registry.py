"""Every figure as one entry of ``figures.yaml``: its title, and what it is drawn from.

A figure's name says where it is drawn: ``curvature_triangle`` is the function ``draw`` of
:mod:`spectral_laws.plotting.curvature.triangle`.
"""

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from spectral_laws.errors import ConfigError
from spectral_laws.settings.yaml_files import read_yaml

PACKAGE = "spectral_laws.plotting"


class FigureEntry(BaseModel):
    """One figure.

    Attributes:
        title: in the report and the gallery.
        tables: below ``results/<preset>``, as ``curvature/exponents``; the last part of each is
            the name of the drawing function's argument.
        params: further arguments, and the keys of the configuration that hold their values.
        needs: key of the configuration without which there is no such figure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    tables: tuple[str, ...]
    params: dict[str, str] = {}
    needs: str | None = None


@cache
def load_figures() -> dict[str, FigureEntry]:
    """All figures by name, in the order of the report.

    Raises:
        ConfigError: naming the entry, if it is wrong or has no module.
    """
    # Not figure_registry.yaml: a script's sources include that of its modules' names, and a new
    # entry is no reason to draw the others again.
    path = Path(__file__).with_name("figures.yaml")
    figures = {}
    for name, entry in read_yaml(path).items():
        try:
            figures[name] = FigureEntry.model_validate(entry)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, (name, *first["loc"])))
            raise ConfigError(f"{path.name}: {where}: {first['msg']}") from None
        if not module_path(name).exists():
            raise ConfigError(f"{path.name}: {name}: there is no module {module_name(name)}")
    return figures


def module_name(figure: str) -> str:
    """The module that draws a figure."""
    return f"{PACKAGE}.{figure.replace('_', '.', 1)}"


def module_path(figure: str) -> Path:
    """The file of that module."""
    parts = figure.replace("_", "/", 1)
    return Path(__file__).parent / "plotting" / f"{parts}.py"
