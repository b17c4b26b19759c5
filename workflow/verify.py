"""Check the results of a preset: nothing damaged, figures from these tables, limits kept.

.venv/bin/python workflow/verify.py laptop
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_laws.cli import run
from spectral_laws.errors import DataError
from spectral_laws.verification import (
    describe_overhead,
    find_changes,
    find_contradictions,
    find_excesses,
    find_misfits,
    find_strays,
    read_chain,
)


def main(preset: Annotated[str, typer.Argument(help="Name of the preset.")] = "laptop") -> None:
    """Follow every figure back to the data; compare files and jobs with what was recorded."""
    path = Path("results", preset, "provenance.json")
    try:
        collected = json.loads(path.read_text(encoding="utf-8"))
        problems = [
            *find_changes(collected),
            *find_strays(collected, Path("figures", preset)),
            *find_excesses(collected),
            *find_misfits(collected),
        ]
    except FileNotFoundError:
        raise DataError(
            f"{path}: not there; it is written last, so finish a run first: `make reproduce` with "
            f"PRESET={preset}"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not as collect_provenance writes it ({error!r}): delete it, run again"
        ) from None
    figures = [Path(name) for name in collected["files"] if name.startswith("figures/")]
    if not figures or not collected["jobs"]:
        problems.append(f"{path}: lists no figure, or no job, so nothing could be checked")
    chain = read_chain(Path(name) for name in collected["files"] if made_here(name))
    problems += find_contradictions(chain)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(
        f"{len(figures)} figure files, drawn from {len(chain.records) - len(figures)} other files, "
        "which were followed back to the data"
    )
    print(summary(collected["jobs"]))
    print(describe_overhead(collected["jobs"], Path("logs", preset, "snakemake.log")))
    if problems:
        sys.exit(
            f"{len(problems)} problem(s). Delete the files that are named and run again; limits "
            "are `mem_mb` and `threads` of the rule"
        )
    print("all sound: every figure comes from the tables on disk")


def made_here(name: str) -> bool:
    """Whether a file is the run's own: given weights lie elsewhere."""
    return name.startswith(("results/", "figures/"))


def summary(jobs: dict[str, dict[str, Any]]) -> str:
    """What the jobs cost, and whether their limits could be checked."""
    if not jobs:
        return "no benchmark files"
    name, largest = max(jobs.items(), key=lambda item: item[1]["memory_mb"] or 0)
    minutes = sum(job["seconds"] for job in jobs.values()) / 60
    unknown = sum(job["declared_memory_mb"] is None for job in jobs.values())
    return (
        f"{len(jobs)} jobs, {minutes:.0f} minutes, {unknown} of them without declared limits; "
        f"the largest used {largest['memory_mb']} of {largest['declared_memory_mb']} MB ({name})"
    )


if __name__ == "__main__":
    run(main, job=False)
