"""Draw the paper's text, the author's files and our values."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table
from spectral_laws.cli import run
from spectral_laws.plotting.curvature.audit import draw_curvature_audit
from spectral_laws.plotting.style import save_figure


def main(
    audit: Annotated[Path, typer.Option(help="Table of audit_reference.")],
    pdf: Annotated[Path, typer.Option(help="Vector figure to write.")],
    png: Annotated[Path, typer.Option(help="Bitmap figure to write, 300 dpi.")],
) -> None:
    """One line per quantity of the audit."""
    figure = draw_curvature_audit(read_table(audit))
    save_figure(figure, pdf, png)


if __name__ == "__main__":
    run(main)
