"""Draw the first-order expansion against the Davis-Kahan bound."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.perturbation import draw_recovery_perturbation
from spectral_laws.plotting.style import save_figure


def main(
    perturbation: Annotated[Path, typer.Option(help="Table of measure_perturbation.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Error of the expansion, looseness of the bound, and norm of the perturbation."""
    figure = draw_recovery_perturbation(read_table(perturbation), confidence=confidence)
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
