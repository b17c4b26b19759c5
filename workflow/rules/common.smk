# What every rule file uses: the checked configuration, and where scripts and their sources are.
import shlex
import sys
from argparse import Namespace
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from spectral_laws.config import load_preset, parse_config
from spectral_laws.errors import ConfigError
from spectral_laws.sources import source_files

PYTHON = shlex.quote(sys.executable)
SCRIPTS = "workflow/scripts"
RESULTS = "results/{preset}"
FIGURES_OF = "figures/{preset}"
LOGS = "logs/{preset}"
BENCHMARKS = "results/{preset}/benchmarks"

TABLES = [
    "recovery/metrics",
    "recovery/directions",
    "recovery/thresholds",
    "recovery/baselines",
    "recovery/spectrum",
    "recovery/perturbation",
    "recovery/population",
    "recovery/error_exponents",
    "curvature/spectra",
    "curvature/factors",
    "curvature/history",
    "curvature/exponents",
    "curvature/ladder",
    "curvature/decomposition",
    "curvature/factor_models",
    "curvature/independence",
    "curvature/windows",
    "curvature/weights",
    "curvature/experiments",
    "curvature/eigenvalues",
    "curvature/finite_differences",
    "optimizers/tuning",
    "optimizers/tuning_times",
    "optimizers/race",
    "optimizers/race_times",
    "optimizers/layer_rates",
    "optimizers/responses",
]

try:
    ACTIVE = parse_config(config, source=" + ".join(str(path) for path in workflow.configfiles))
except ConfigError as error:
    raise WorkflowError(str(error)) from None
PRESET = ACTIVE.preset


@cache
def preset_config(name):
    """Configuration of a preset: the one given on the command line, or the file of that name."""
    if name == PRESET:
        return ACTIVE
    try:
        return load_preset(name, Path(workflow.basedir))
    except ConfigError as error:
        raise WorkflowError(str(error)) from None


def settings(path, without=()):
    """Params function: the JSON of one slice of the preset's configuration.

    `path` is dotted; a part in braces is a wildcard, as in "recovery.studies.{study}".
    `without` names keys of the slice that the job does not depend on.
    """

    def slice_of(wildcards):
        value = preset_config(wildcards.preset)
        for part in path.split("."):
            name = part.format(**wildcards)
            if isinstance(value, dict):
                if name not in value:
                    raise WorkflowError(
                        f"preset {wildcards.preset} has no {part.strip('{}')} {name!r}; "
                        f"there are {', '.join(value)}"
                    )
                value = value[name]
            else:
                value = getattr(value, name)
        if isinstance(value, (str, int, float)):
            return str(value)
        return value.model_dump_json(exclude=set(without))

    return slice_of


def sources(script):
    """The source files a script of workflow/scripts really uses."""
    return [str(path) for path in source_files(Path(workflow.basedir, SCRIPTS, script))]


def gpus(wildcards):
    """GPUs that a GPU-capable job asks for."""
    return 1 if preset_config(wildcards.preset).device == "cuda" else 0
