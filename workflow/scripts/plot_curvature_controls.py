"""Draw finite differences and true eigenvalues beside the curvatures."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.controls import draw_curvature_controls
from spectral_laws.plotting.style import save_figure


def main(
    finite_differences: Annotated[Path, typer.Option(help="Table of finite differences.")],
    eigenvalues: Annotated[Path, typer.Option(help="Table of leading eigenvalues.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Finite differences against exact curvatures; h_1 against the largest eigenvalue."""
    figure = draw_curvature_controls(
        read_table(finite_differences), read_table(eigenvalues), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
