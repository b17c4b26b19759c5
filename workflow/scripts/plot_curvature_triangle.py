"""Draw s against alpha gamma for every layer."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.triangle import draw_curvature_triangle
from spectral_laws.plotting.style import save_figure


def main(
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """Fitted slope s against the product of the slopes alpha and gamma."""
    figure = draw_curvature_triangle(read_table(exponents), read_table(experiments))
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
