"""Draw the recovery of single teacher directions."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.directions import draw_recovery_directions
from spectral_laws.plotting.style import save_figure


def main(
    directions: Annotated[Path, typer.Option(help="Directions table of recover_features.")],
    thresholds: Annotated[Path, typer.Option(help="Thresholds table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    study: Annotated[str, typer.Option(help="Study of true features, on the left.")] = "quadratic",
    equivalent: Annotated[
        str, typer.Option(help="Study of equivalent features, on the right.")
    ] = "equivalent",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Overlap of every teacher direction, and how many are recovered, against sample size."""
    figure = draw_recovery_directions(
        read_table(directions),
        read_table(thresholds),
        study=study,
        equivalent=equivalent,
        confidence=confidence,
    )
    save_figure(figure, pdf, png, study=study, equivalent=equivalent, confidence=confidence)


if __name__ == "__main__":
    run(main)
