"""Build the report of a finished run: one HTML file, to be opened in any browser.

python workflow/build_report.py laptop
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.atomic import atomic_path
from spectral_laws.cli import run
from spectral_laws.errors import DataError

PIECES = Path("workflow/report")


def main(preset: Annotated[str, typer.Argument(help="Name of the preset.")] = "laptop") -> None:
    """Let Snakemake collect figures, tables and captions of a preset into one file."""
    results = Path("results", preset)
    if not (results / "provenance.json").exists():
        raise DataError(
            f"{results}: no finished run; finish it first: `make reproduce` with PRESET={preset}"
        )
    configfile = Path("config", f"{preset}.yaml")
    chosen = ["--configfile", str(configfile)] if configfile.exists() else []
    path = results / "report" / "report.html"
    with atomic_path(path) as temporary:
        command = [
            *(sys.executable, "-m", "snakemake", *chosen, "--quiet", "all", "--nolock"),
            *("--report", str(temporary)),
            *("--report-stylesheet", str(PIECES / "report.css")),
            *("--report-metadata", str(PIECES / "metadata.yaml")),
        ]
        if subprocess.run(command).returncode:
            sys.exit(f"{path}: not written; Snakemake says above why")
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB, open it in a browser")


if __name__ == "__main__":
    run(main)
