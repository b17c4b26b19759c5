"""Draw the spectrum of a moment matrix."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.spectrum import draw_recovery_spectrum
from spectral_laws.plotting.style import save_figure


def main(
    spectrum: Annotated[Path, typer.Option(help="Table of compute_spectrum.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """Eigenvalue density with the predicted bulk."""
    figure = draw_recovery_spectrum(read_table(spectrum))
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
