"""What the scripts under ``workflow/scripts`` share: options and error reports."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from pydantic import BaseModel

from spectral_laws.errors import SpectralLawsError
from spectral_laws.provenance import forget_inputs
from spectral_laws.settings.base import parse_settings

Settings = TypeVar("Settings", bound=BaseModel)


def settings_option(model: type[Settings]) -> Any:  # noqa: ANN401  (typer's own type)
    """A typer option that takes a JSON object and validates it as ``model``."""
    fields = ", ".join(model.model_fields)

    def parse(text: str) -> Settings:
        return parse_settings(model, text)

    return typer.Option(parser=parse, metavar="JSON", help=f"JSON object with the keys {fields}.")


def run(function: Callable[..., None]) -> None:
    """Run ``function`` as a command line; report a SpectralLawsError by its message alone."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(function)
    forget_inputs()
    try:
        app()
    except SpectralLawsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
