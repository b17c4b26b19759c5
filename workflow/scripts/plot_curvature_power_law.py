"""Draw curvature against singular value for four layers of each network."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.power_law import draw_curvature_power_law
from spectral_laws.plotting.style import save_figure


def main(
    spectra: Annotated[Path, typer.Option(help="Table of measure_curvature.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    top_k: Annotated[int, typer.Option(help="Directions that the fits use.", min=1)],
    model: Annotated[
        str | None, typer.Option(help="Draw this network alone, on four panels.")
    ] = None,
) -> None:
    """Directional curvature against singular value, log-log, with the fit."""
    figure = draw_curvature_power_law(
        read_table(spectra),
        read_table(exponents),
        read_table(experiments),
        top_k=top_k,
        model=model,
    )
    save_figure(figure, pdf, png, top_k=top_k, model=model)


if __name__ == "__main__":
    run(main)
