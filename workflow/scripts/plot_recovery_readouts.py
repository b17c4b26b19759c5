"""Draw the recovery under nonlinear readouts."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.readouts import draw_recovery_readouts
from spectral_laws.plotting.style import save_figure


def main(
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    thresholds: Annotated[Path, typer.Option(help="Thresholds table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    study: Annotated[
        str,
        typer.Option(help="Study of true features with the identity; others are named after it."),
    ] = "quadratic",
    equivalent: Annotated[
        str, typer.Option(help="Study of equivalent features with the identity.")
    ] = "equivalent",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Test MSE, feature overlap and thresholds under the identity, tanh and relu."""
    figure = draw_recovery_readouts(
        read_table(metrics),
        read_table(thresholds),
        study=study,
        equivalent=equivalent,
        confidence=confidence,
    )
    save_figure(figure, pdf, png, study=study, equivalent=equivalent, confidence=confidence)


if __name__ == "__main__":
    run(main)
