"""Draw the sharp theory against measurement."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.sharp_theory import draw_recovery_sharp_theory
from spectral_laws.plotting.style import save_figure


def main(
    directions: Annotated[Path, typer.Option(help="Directions table of recover_features.")],
    thresholds: Annotated[Path, typer.Option(help="Thresholds table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    study: Annotated[str, typer.Option(help="Study of true features, drawn hollow.")] = "quadratic",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Predicted against measured overlaps, and the constant of the threshold."""
    figure = draw_recovery_sharp_theory(
        read_table(directions), read_table(thresholds), study=study, confidence=confidence
    )
    save_figure(figure, pdf, png, study=study, confidence=confidence)


if __name__ == "__main__":
    run(main)
