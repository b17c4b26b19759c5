"""Draw alpha and the rank models' shares during training."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.trajectory import draw_curvature_trajectory
from spectral_laws.plotting.style import save_figure


def main(
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Exponent alpha and BIC winners against the epoch."""
    figure = draw_curvature_trajectory(read_table(exponents), confidence=confidence)
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
