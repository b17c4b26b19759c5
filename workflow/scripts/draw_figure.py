"""Draw a figure from tables."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.errors import ConfigError
from spectral_laws.plotting.figures import draw_figure
from spectral_laws.plotting.style import save_figure


def main(
    tables: Annotated[list[Path], typer.Argument(help="Tables it is drawn from, in any order.")],
    figure: Annotated[str, typer.Option(help="Its name, as curvature_triangle.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    parameters: Annotated[str, typer.Option(help="JSON object of further arguments.")] = "{}",
) -> None:
    """The function `draw` of the figure's module gets every table under the file's name."""
    try:
        arguments = dict(json.loads(parameters))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"--parameters {parameters}: not a JSON object ({error})") from None
    if len({path.stem for path in tables}) < len(tables):
        raise ConfigError(f"two tables of one name among {', '.join(map(str, tables))}")
    drawn = draw_figure(figure, **{path.stem: read_table(path) for path in tables}, **arguments)
    save_figure(drawn, pdf, png, figure=figure, **arguments)


if __name__ == "__main__":
    run(main)
