"""Fit the curvature ladder, the decomposition of alpha, and the factors' rank models."""

from pathlib import Path
from typing import Annotated

import typer

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.cli import run, settings_option
from spectral_laws.curvature.fits.decomposition import fit_decomposition
from spectral_laws.curvature.fits.factor_models import compare_factor_models
from spectral_laws.curvature.fits.ladder_slopes import fit_ladder
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import Intervals


def main(
    spectra: Annotated[Path, typer.Option(help="Parquet table of measured spectra.")],
    factors: Annotated[Path, typer.Option(help="Parquet table of Kronecker factors.")],
    top_k: Annotated[int, typer.Option(help="Leading directions that enter the fits.", min=1)],
    intervals: Annotated[Intervals, settings_option(Intervals)],
    seed: Annotated[int, typer.Option(help="Root seed of the bootstrap.", min=0)],
    ladder: Annotated[Path, typer.Option(help="Table of ratios to write.")],
    decomposition: Annotated[Path, typer.Option(help="Table of alpha's parts to write.")],
    factor_models: Annotated[Path, typer.Option(help="Table of rank models to write.")],
) -> None:
    """Fit ratios of curvatures, parts of alpha and rank models of factors, layer by layer."""
    parameters = {"spectra": str(spectra), "top_k": top_k, "intervals": intervals.model_dump()}
    provenance = Provenance(parameters=parameters | {"factors": str(factors)}, seed=seed)
    table, options = read_table(spectra), intervals.model_dump() | {"top_k": top_k, "seed": seed}
    write_table(fit_ladder(table, **options), ladder, provenance, "curvature/ladder")
    parts = fit_decomposition(table, **options)
    write_table(parts, decomposition, provenance, "curvature/decomposition")
    models = compare_factor_models(read_table(factors), table, top_k=top_k)
    write_table(models, factor_models, provenance, "curvature/factor_models")


if __name__ == "__main__":
    run(main)
