"""Fit kernels, random features and a network to the samples of some teachers."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.baselines import tabulate_baselines
from spectral_laws.settings.base import replicates
from spectral_laws.settings.recovery import Baselines, Evaluation, TeacherFamily


def main(
    study: Annotated[TeacherFamily, settings_option(TeacherFamily)],
    evaluation: Annotated[Evaluation, settings_option(Evaluation)],
    baselines: Annotated[Baselines, settings_option(Baselines)],
    study_name: Annotated[str, typer.Option(help="Name of the study, kept in the table.")],
    dimension: Annotated[int, typer.Option(help="Dimension d of the inputs.", min=2)],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    first: Annotated[int, typer.Option(help="First teacher, from 0.", min=0)] = 0,
    last: Annotated[int, typer.Option(help="Last teacher.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Fit and test every baseline at the sample sizes up to max_sample_size."""
    settings = {"study": study, "evaluation": evaluation, "baselines": baselines}
    where = {"study_name": study_name, "dimension": dimension, "first": first, "last": last}
    parameters = where | {name: value.model_dump(mode="json") for name, value in settings.items()}
    provenance = Provenance(parameters, seed)
    table = tabulate_baselines(
        study_name,
        study,
        evaluation,
        baselines,
        dimension=dimension,
        replicates=replicates(first, last),
        seed=seed,
    )
    write_table(table, output, provenance, "recovery/baselines")


if __name__ == "__main__":
    run(main)
