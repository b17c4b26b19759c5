"""Put a downloaded file in its place if it is what it must be."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.cli import run
from spectral_laws.curvature.datasets.downloads import verify_download


def main(
    download: Annotated[Path, typer.Option(help="File as it was downloaded.")],
    size: Annotated[int, typer.Option(help="Bytes it must have.")],
    sha256: Annotated[str, typer.Option(help="SHA-256 it must have, 64 hex digits.")],
    output: Annotated[Path, typer.Option(help="File to write.")],
) -> None:
    """Copy the download to its place if size and SHA-256 are right; else report both."""
    verify_download(download, output, size=size, sha256=sha256)


if __name__ == "__main__":
    run(main)
