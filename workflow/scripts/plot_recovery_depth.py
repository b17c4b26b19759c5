"""Draw the advantage of depth over kernels."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.recovery.depth import DepthStudies, draw_recovery_depth
from spectral_laws.plotting.style import save_figure


def main(
    metrics: Annotated[Path, typer.Option(help="Metrics table of recover_features.")],
    directions: Annotated[Path, typer.Option(help="Directions table of recover_features.")],
    baselines: Annotated[Path, typer.Option(help="Table of fit_baselines.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
    linear: Annotated[
        str, typer.Option(help="Study of the baselines at degree 1.")
    ] = "depth_linear",
    quadratic: Annotated[
        str, typer.Option(help="Study of the baselines at degree 2.")
    ] = "depth_quadratic",
    spectral_linear: Annotated[
        str, typer.Option(help="Study of the spectral method at degree 1.")
    ] = "smoothing",
    spectral_quadratic: Annotated[
        str, typer.Option(help="Study of the spectral method at degree 2, of fixed width.")
    ] = "wide",
    confidence: Annotated[
        float, typer.Option(help="Level of the intervals over seeds.", min=0.5, max=0.999)
    ] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 2000,
) -> None:
    """Sample sizes against dimension, and test errors, of the spectral method and baselines."""
    studies = DepthStudies(linear, quadratic, spectral_linear, spectral_quadratic)
    figure = draw_recovery_depth(
        read_table(metrics),
        read_table(directions),
        read_table(baselines),
        studies=studies,
        confidence=confidence,
        resamples=resamples,
    )
    drawn_with = {"confidence": confidence, "resamples": resamples}
    save_figure(figure, pdf, png, studies=asdict(studies), **drawn_with)


if __name__ == "__main__":
    run(main)
