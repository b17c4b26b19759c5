"""Draw the learning curves of all methods in every race."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.optimizers.race import draw_optimizers_race
from spectral_laws.plotting.style import save_figure


def main(
    race: Annotated[Path, typer.Option(help="Table of train_method.")],
    race_times: Annotated[Path, typer.Option(help="Its table of seconds.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
) -> None:
    """Test accuracy or loss against epochs and against seconds of training."""
    figure = draw_optimizers_race(
        read_table(race),
        read_table(race_times),
        confidence=confidence,
    )
    save_figure(figure, pdf, png, confidence=confidence)


if __name__ == "__main__":
    run(main)
