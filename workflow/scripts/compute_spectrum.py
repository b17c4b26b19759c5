"""Compute the whole spectrum of one moment matrix."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.provenance import Provenance
from spectral_laws.recovery.spectrum import tabulate_spectrum
from spectral_laws.settings.recovery import SpectrumPoint, TeacherFamily


def main(
    study: Annotated[TeacherFamily, settings_option(TeacherFamily)],
    point: Annotated[SpectrumPoint, settings_option(SpectrumPoint)],
    output: Annotated[Path, typer.Option(help="Table to write.")],
    memory_mb: Annotated[int, typer.Option(help="MB of samples kept in memory.", min=1)] = 1500,
    seed: Annotated[int, typer.Option(help="Root of the random streams.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="Torch device, cpu or cuda.")] = "cpu",
) -> None:
    """Compute the spectrum of the moment matrix of the study's first teacher."""
    parameters = {"study": study.model_dump(mode="json"), "point": point.model_dump()}
    provenance = Provenance(parameters, seed, device)
    table = tabulate_spectrum(study, point, seed=seed, memory_mb=memory_mb, device=device)
    write_table(table, output, provenance, "recovery/spectrum")


if __name__ == "__main__":
    run(main)
