"""Compare two runs of one preset, in two project folders.

.venv/bin/python workflow/compare.py --preset smoke . ../other
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.cli import run
from spectral_laws.verification import compare_runs


def main(
    first: Annotated[Path, typer.Argument(help="Project folder of one run.")],
    second: Annotated[Path, typer.Argument(help="Project folder of the other.")],
    preset: Annotated[str, typer.Option(help="Name of the preset.")] = "laptop",
) -> None:
    """Tables and arrays by content, figures and texts byte by byte, all but seconds."""
    result = compare_runs(first, second, preset)
    for difference in result.differences:
        print(difference, file=sys.stderr)
    print(f"compared {result.compared} files, {len(result.timed)} of them but for their seconds")
    if result.differences:
        sys.exit(f"{len(result.differences)} differences")
    print("equal")


if __name__ == "__main__":
    run(main, job=False)
