"""Draw the gain in test accuracy by learning rates per layer."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.optimizers.layer_rates import draw_optimizers_layer_rates
from spectral_laws.plotting.style import save_figure


def main(
    layer_rates: Annotated[Path, typer.Option(help="Table of train_layer_rates.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
) -> None:
    """Paired differences of test accuracy, with layer rates minus without."""
    figure = draw_optimizers_layer_rates(read_table(layer_rates), confidence=confidence)
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
