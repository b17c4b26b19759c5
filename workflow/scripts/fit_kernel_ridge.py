"""Fit kernel ridge regression to the samples of one teacher."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import Provenance, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Evaluation, KernelRidge, TeacherFamily
from spectral_laws.recovery.kernels import tabulate_kernel_ridge


def main(
    study: Annotated[TeacherFamily, settings_option(TeacherFamily)],
    evaluation: Annotated[Evaluation, settings_option(Evaluation)],
    kernel: Annotated[KernelRidge, settings_option(KernelRidge)],
    study_name: Annotated[str, typer.Option(help="Name of the study, kept in the table.")],
    dimension: Annotated[int, typer.Option(help="Dimension d of the inputs.", min=2)],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    replicate: Annotated[int, typer.Option(help="Which teacher, from 0.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
) -> None:
    """Fit and test kernel ridge regression at the sample sizes the kernel matrix allows."""
    settings = {"study": study, "evaluation": evaluation, "kernel": kernel}
    where = {"study_name": study_name, "dimension": dimension, "replicate": replicate}
    parameters = where | {name: value.model_dump(mode="json") for name, value in settings.items()}
    provenance = Provenance(parameters, seed)
    table = tabulate_kernel_ridge(
        study_name, study, evaluation, kernel, dimension=dimension, replicate=replicate, seed=seed
    )
    write_table(table, output, provenance)


if __name__ == "__main__":
    run(main)
