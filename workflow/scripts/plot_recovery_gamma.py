"""Draw the test error for several decays of the strengths."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.gamma import draw_recovery_gamma
from spectral_laws.plotting.style import save_figure


def main(
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    prefix: Annotated[
        str, typer.Option(help="Start of the names of the studies, which differ in gamma alone.")
    ] = "gamma_",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Test MSE and feature overlap against sample size, one colour per gamma."""
    figure = draw_recovery_gamma(read_table(metrics), prefix=prefix, confidence=confidence)
    save_figure(figure, pdf, png, prefix=prefix, confidence=confidence)


if __name__ == "__main__":
    run(main)
