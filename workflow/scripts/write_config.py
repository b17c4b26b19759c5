"""Save the resolved configuration of a preset beside its results."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from spectral_laws.atomic import atomic_path
from spectral_laws.cli import run, settings_option
from spectral_laws.config import Config


def main(
    config: Annotated[Config, settings_option(Config)],
    output: Annotated[Path, typer.Option(help="YAML file to write.")],
) -> None:
    """Write the configuration with every default and override resolved."""
    with atomic_path(output) as temporary:
        temporary.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))


if __name__ == "__main__":
    run(main)
