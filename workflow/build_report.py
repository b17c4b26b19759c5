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
from spectral_laws.settings.yaml_files import read_yaml

PIECES = Path("workflow/report")


def main(preset: Annotated[str, typer.Argument(help="Name of the preset.")] = "laptop") -> None:
    """Let Snakemake collect figures, tables and captions of a preset into one file."""
    results = Path("results", preset)
    finish = f"finish the run first: `make reproduce` with PRESET={preset}"
    if not (results / "provenance.json").exists():
        raise DataError(f"{results}: no finished run; {finish}")
    # The report is made of what lies there and of today's configuration: they must agree.
    if "Nothing to be done" not in snakemake(preset, "--dry-run"):
        raise DataError(f"{results}: not what the configuration and the code say now; {finish}")
    path = results / "report" / "report.html"
    with atomic_path(path) as temporary:
        snakemake(
            preset,
            *("--report", str(temporary)),
            *("--report-stylesheet", str(PIECES / "report.css")),
            *("--report-metadata", str(PIECES / "metadata.yaml")),
        )
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB, open it in a browser")


def snakemake(preset: str, *arguments: str) -> str:
    """What Snakemake says when it is called for a preset.

    Raises:
        DataError: if it fails, with what it said last, or if the preset's file names another one.
    """
    command = [sys.executable, "-m", "snakemake", "--nolock", *arguments]
    configfile = Path("config", f"{preset}.yaml")
    if configfile.exists():
        named = read_yaml(configfile).get("preset")
        if named != preset:
            raise DataError(f"{configfile}: says preset: {named}; name the file after its preset")
        command += ["--configfile", str(configfile)]
    result = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        said = "\n".join(result.stdout.splitlines()[-15:])
        raise DataError(f"results/{preset}: Snakemake cannot build the report:\n{said}")
    return result.stdout


if __name__ == "__main__":
    run(main, job=False)
