"""Compare the first-order expansion of the estimated directions with the Davis-Kahan bound."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.perturbation import tabulate_perturbation
from spectral_laws.settings.recovery import RecoveryStudy


def main(
    study: Annotated[RecoveryStudy, settings_option(RecoveryStudy)],
    study_name: Annotated[str, typer.Option(help="Name of the study, kept in the table.")],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    memory_mb: Annotated[int, typer.Option(help="MB of samples kept in memory.", min=1)] = 500,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Measure how the moment matrix's noise turns each direction, at every sample size."""
    parameters = {"study_name": study_name, "study": study.model_dump(mode="json")}
    provenance = Provenance(parameters, seed)
    table = tabulate_perturbation(study_name, study, seed=seed, memory_mb=memory_mb)
    write_table(table, output, provenance, "recovery/perturbation")


if __name__ == "__main__":
    run(main)
