"""Draw the test error of the recovery studies."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery_mse import draw_recovery_mse
from spectral_laws.plotting.style import save_figure


def main(
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    kernel: Annotated[
        Path | None, typer.Option(help="Table of fit_kernel_ridge; no baseline without.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
) -> None:
    """Test MSE against samples per feature, one panel per study."""
    baseline = None if kernel is None else read_table(kernel)
    figure = draw_recovery_mse(read_table(metrics), baseline, confidence=confidence)
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
