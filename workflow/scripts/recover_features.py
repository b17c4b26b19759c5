"""Recover some teachers from growing samples."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.tables import tabulate_recovery
from spectral_laws.settings.base import replicates
from spectral_laws.settings.recovery import Estimator, Evaluation, TeacherFamily


def main(
    study: Annotated[TeacherFamily, settings_option(TeacherFamily)],
    estimator: Annotated[Estimator, settings_option(Estimator)],
    evaluation: Annotated[Evaluation, settings_option(Evaluation)],
    study_name: Annotated[str, typer.Option(help="Name of the study, kept in the tables.")],
    dimension: Annotated[int, typer.Option(help="Dimension d of the inputs.", min=2)],
    metrics: Annotated[Path, typer.Option(help="Table to write: errors and overlaps.")],
    directions: Annotated[Path, typer.Option(help="Table to write: each direction's overlap.")],
    thresholds: Annotated[Path, typer.Option(help="Table to write: half-recovery sizes.")],
    first: Annotated[int, typer.Option(help="First teacher, from 0.", min=0)] = 0,
    last: Annotated[int, typer.Option(help="Last teacher.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Recover each teacher at every sample size of its study, and measure the estimates."""
    settings = {"study": study, "estimator": estimator, "evaluation": evaluation}
    place = {"study_name": study_name, "dimension": dimension, "first": first, "last": last}
    parameters = {name: value.model_dump(mode="json") for name, value in settings.items()}
    provenance = Provenance(place | parameters, seed, device)
    tables = tabulate_recovery(
        study_name,
        study,
        estimator,
        evaluation,
        dimension=dimension,
        replicates=replicates(first, last),
        seed=seed,
        device=device,
    )
    write_table(tables.metrics, metrics, provenance, "recovery/metrics")
    write_table(tables.directions, directions, provenance, "recovery/directions")
    write_table(tables.thresholds, thresholds, provenance, "recovery/thresholds")


if __name__ == "__main__":
    run(main)
