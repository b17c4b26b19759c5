"""Draw what makes each layer's alpha."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.decomposition import draw_curvature_decomposition
from spectral_laws.plotting.style import save_figure


def main(
    decomposition: Annotated[Path, typer.Option(help="Table of the slopes of the decomposition.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Slopes of eigenvalues, alignments and gap, stacked to alpha, layer by layer."""
    figure = draw_curvature_decomposition(
        read_table(decomposition), read_table(experiments), confidence=confidence
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
