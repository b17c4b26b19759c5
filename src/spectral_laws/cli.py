"""What the scripts under ``workflow/scripts`` share: options and error reports."""

import gc
import sys
import time
from collections.abc import Callable
from functools import wraps
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


def run(function: Callable[..., None], *, job: bool = True) -> None:
    """Run ``function`` as a command line; report a SpectralLawsError by its message alone.

    A ``job`` prints, for its log, what ``verification.read_jobs`` reads: the processor seconds of
    its process until here and, of these, those until now, for the interpreter and the imports.
    """
    start = time.process_time()

    @wraps(function)
    def timed(**options: Any) -> None:  # noqa: ANN401  (the options are the function's)
        function(**options)
        print(f"processor seconds: {time.process_time():.2f}, to start {start:.2f}")

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(timed if job else function)
    forget_inputs()
    gc.freeze()  # what the imports left stays: it need not be searched again for what can go
    try:
        app()
    except SpectralLawsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        gc.freeze()  # nor at the end, when the interpreter would search everything three times
