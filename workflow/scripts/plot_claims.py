"""Draw the table of claims and verdicts."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.claims import draw_claims
from spectral_laws.plotting.style import save_figure


def main(
    claims: Annotated[Path, typer.Option(help="Table of evaluate_claims.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """One row per claim: verdict, the paper's value and ours."""
    save_figure(draw_claims(read_table(claims)), pdf, png)


if __name__ == "__main__":
    run(main)
