"""Draw alpha from parts of the spectrum."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.windows import draw_curvature_windows
from spectral_laws.plotting.style import save_figure


def main(
    windows: Annotated[Path, typer.Option(help="Table of fit_windows.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Exponent alpha by window of directions."""
    figure = draw_curvature_windows(
        read_table(windows), read_table(experiments), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
