"""Write what made every file of a run, and what each of its jobs cost."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.atomic import atomic_path
from spectral_laws.cli import run
from spectral_laws.verification import collect_provenance


def main(
    files: Annotated[list[Path], typer.Argument(help="Tables, figures and texts of the run.")],
    benchmarks: Annotated[Path, typer.Option(help="Folder of the run's benchmark files.")],
    logs: Annotated[Path, typer.Option(help="Folder of the run's logs.")],
    output: Annotated[Path, typer.Option(help="JSON file to write.")],
) -> None:
    """Follow the files back to what they were made from, and collect the provenance of all."""
    collected = collect_provenance(files, benchmarks, logs)
    with atomic_path(output) as temporary:
        temporary.write_text(json.dumps(collected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(main)
