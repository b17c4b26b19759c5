"""Draw the errors of s = alpha gamma beside their controls."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.independence import draw_curvature_independence
from spectral_laws.plotting.style import save_figure


def main(
    independence: Annotated[Path, typer.Option(help="Table of fit_independence.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Relative errors of s = alpha gamma: whole batch, halves, permuted, least squares."""
    figure = draw_curvature_independence(
        read_table(independence), read_table(experiments), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
