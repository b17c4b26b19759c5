"""Draw the update spectra of all methods."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.optimizers.responses import draw_optimizers_responses
from spectral_laws.plotting.style import save_figure


def main(
    responses: Annotated[Path, typer.Option(help="Table of measure_responses.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """Update along each singular direction of a gradient, against its singular value."""
    figure = draw_optimizers_responses(read_table(responses))
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
