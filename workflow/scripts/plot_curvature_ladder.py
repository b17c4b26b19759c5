"""Draw the ratios of the curvature ladder and their slopes."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.ladder import draw_curvature_ladder
from spectral_laws.plotting.style import save_figure


def main(
    ladder: Annotated[Path, typer.Option(help="Table of the ladder's ratios.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Ratio of each rung to the next, its slope in sigma, and the whole gap against alpha."""
    figure = draw_curvature_ladder(
        read_table(ladder), read_table(exponents), read_table(experiments), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
