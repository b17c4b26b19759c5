"""Draw networks that differ in one attribute."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.mechanisms import draw_curvature_mechanisms
from spectral_laws.plotting.style import save_figure


def main(
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    spectra: Annotated[Path, typer.Option(help="Table of measure_curvature.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """The mechanisms: normalisation, skips, classes, outputs, task, convolutions."""
    figure = draw_curvature_mechanisms(
        read_table(experiments), read_table(spectra), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
