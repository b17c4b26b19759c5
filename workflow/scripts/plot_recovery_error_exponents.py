"""Draw the exponent of the test error against the decay of the strengths."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.error_exponents import draw_recovery_error_exponents
from spectral_laws.plotting.style import save_figure


def main(
    error_exponents: Annotated[Path, typer.Option(help="Table of predict_exponents.")],
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 2000,
) -> None:
    """Exponents of the test error from the sharp theory and from simulation."""
    figure = draw_recovery_error_exponents(
        read_table(error_exponents), read_table(metrics), confidence=confidence, resamples=resamples
    )
    save_figure(figure, pdf, png, confidence=confidence, resamples=resamples)


if __name__ == "__main__":
    run(main)
