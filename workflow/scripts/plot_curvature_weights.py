"""Draw the weights' tails against the decay of curvature."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.weights import draw_curvature_weights
from spectral_laws.plotting.style import save_figure


def main(
    weights: Annotated[Path, typer.Option(help="Table of fit_weight_tails.")],
    exponents: Annotated[Path, typer.Option(help="Table of fit_exponents.")],
    experiments: Annotated[Path, typer.Option(help="Table of compare_models.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """Decay and tail exponent of the weights against s."""
    figure = draw_curvature_weights(
        read_table(weights), read_table(exponents), read_table(experiments)
    )
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
