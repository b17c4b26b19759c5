"""Draw what true features lose at finite dimension."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.finite_size import draw_recovery_finite_size
from spectral_laws.plotting.style import save_figure


def main(
    population: Annotated[Path, typer.Option(help="Table of compute_population.")],
    directions: Annotated[Path, typer.Option(help="Directions table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    study: Annotated[
        str, typer.Option(help="Study of true features at finite sample size.")
    ] = "quadratic",
    transition: Annotated[
        str, typer.Option(help="Study of degree 1 whose transition is drawn.")
    ] = "smoothing",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 2000,
) -> None:
    """Gap of true features to their Gaussian equivalent against dimension."""
    figure = draw_recovery_finite_size(
        read_table(population),
        read_table(directions),
        study=study,
        transition=transition,
        confidence=confidence,
        resamples=resamples,
    )
    drawn_with = {"study": study, "transition": transition}
    save_figure(figure, pdf, png, **drawn_with, confidence=confidence, resamples=resamples)


if __name__ == "__main__":
    run(main)
