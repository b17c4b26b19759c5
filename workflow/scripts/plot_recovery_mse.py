"""Draw the test error and the feature overlap of a study."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.mse import draw_recovery_mse
from spectral_laws.plotting.style import save_figure


def main(
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    study: Annotated[str, typer.Option(help="Study to draw.")] = "quadratic",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Test MSE and feature overlap against sample size, with the sharp theory."""
    figure = draw_recovery_mse(read_table(metrics), study=study, confidence=confidence)
    save_figure(figure, pdf, png, study=study, confidence=confidence)


if __name__ == "__main__":
    run(main)
