"""Draw what Kronecker factors say about the gradient."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.factors import draw_curvature_factors
from spectral_laws.plotting.style import save_figure


def main(
    spectra: Annotated[Path, typer.Option(help="Table of measure_curvature.")],
    factor_models: Annotated[Path, typer.Option(help="Table of the factors' rank models.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    top_k: Annotated[int, typer.Option(help="Directions that the fits use.", min=1)],
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Kronecker curvature against sigma^2, ranks of the factors, their laws in rank."""
    figure = draw_curvature_factors(
        read_table(spectra),
        read_table(factor_models),
        read_table(experiments),
        top_k=top_k,
        confidence=confidence,
    )
    save_figure(figure, pdf, png, top_k=top_k, confidence=confidence)


if __name__ == "__main__":
    run(main)
