"""Draw which law singular values follow in rank."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.rank_models import draw_curvature_rank_models
from spectral_laws.plotting.style import save_figure


def main(
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    spectra: Annotated[Path, typer.Option(help="Table of measure_curvature.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    top_k: Annotated[int, typer.Option(help="Directions that the fits use.", min=1)],
    confidence: Annotated[
        float, typer.Option(help="Level of the interval over seeds.", min=0, max=1)
    ] = 0.95,
) -> None:
    """Winners by BIC per network and role, with an example of each law."""
    figure = draw_curvature_rank_models(
        read_table(exponents),
        read_table(spectra),
        read_table(experiments),
        top_k=top_k,
        confidence=confidence,
    )
    save_figure(figure, pdf, png, top_k=top_k, confidence=confidence)


if __name__ == "__main__":
    run(main)
