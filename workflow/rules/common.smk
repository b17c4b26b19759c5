# What every rule file uses: the checked configuration, and where scripts and their sources are.
import json
import os
import shlex
import sys
import time
from argparse import Namespace
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from spectral_laws.claims.registry import load_claims
from spectral_laws.config import load_preset, parse_config
from spectral_laws.errors import ConfigError
from spectral_laws.figure_registry import load_figures, module_path
from spectral_laws.sources import source_files
from spectral_laws.tables.schemas import load_schema, table_names

PYTHON = shlex.quote(sys.executable)
SCRIPTS = "workflow/scripts"
RESULTS = "results/{preset}"
FIGURES_OF = "figures/{preset}"
LOGS = "logs/{preset}"
BENCHMARKS = "results/{preset}/benchmarks"

PAPERS = {
    "claims": "Claims",
    "recovery": "Recovery, arXiv:2605.14567",
    "curvature": "Curvature, arXiv:2606.02596",
    "optimizers": "Curvature, arXiv:2606.02596",
}
"""Categories of the report, by the part of the project that a figure or table belongs to."""

TABLES = [name for name in table_names() if load_schema(name).product]

try:
    ACTIVE = parse_config(config, source=" + ".join(str(path) for path in workflow.configfiles))
except ConfigError as error:
    raise WorkflowError(str(error)) from None
PRESET = ACTIVE.preset


def products(preset, room=""):
    """Tables and figures of a preset, of one part of the project or of all."""
    return [
        *(f"results/{preset}/{table}.parquet" for table in TABLES if table.startswith(room)),
        *(
            f"figures/{preset}/{name}.{suffix}"
            for name, figure in load_figures().items()
            if name.startswith(room) and not (figure.needs and lookup(preset, figure.needs) is None)
            for suffix in ("pdf", "png")
        ),
    ]


def reported_table(name):
    """A table of a preset, to be found in the report under its paper."""
    return report(
        f"{RESULTS}/{name}.parquet",
        caption="../report/table.rst",
        category=PAPERS[name.split("/")[0]],
        subcategory="tables",
        labels={"table": name.split("/")[1]},
    )


@cache
def preset_config(name):
    """Configuration of a preset: the one given on the command line, or the file of that name."""
    if name == PRESET:
        return ACTIVE
    try:
        return load_preset(name, Path(workflow.basedir))
    except ConfigError as error:
        raise WorkflowError(str(error)) from None


def check_machine(workflow):
    """Stop before the first job where none could succeed: nothing to write to, or no GPU."""
    for name in ("results", "figures", "logs", "scratch"):
        place = Path(name)
        if place.is_symlink() and not place.exists():
            raise WorkflowError(f"{name} is a link to {place.readlink()}, which is not there")
        if not place.exists():
            continue
        if not place.is_dir():
            raise WorkflowError(f"{name} is a file; a folder of this name is needed")
        if not os.access(place, os.W_OK):
            raise WorkflowError(f"{name}/ cannot be written (read-only?); nothing was started")
    # Snakemake would remove what is older than its source, however right it is.
    Path(".snakemake", "clock").touch()
    now = Path(".snakemake", "clock").stat().st_mtime  # of this disk, be it another machine's
    for path in {Path(path) for job in workflow.dag.needrun_jobs() for path in job.input}:
        if path.exists() and path.stat().st_mtime > now:
            raise WorkflowError(f"{path}: dated in the future: `touch {path}`; nothing was started")
    if not workflow.non_local_exec and any(
        job.resources.get("gpu") for job in workflow.dag.needrun_jobs()
    ):
        from spectral_laws.device import require_device

        try:
            require_device("cuda")
        except ConfigError as error:
            raise WorkflowError(f"{error}; nothing was started") from None


def lookup(preset, path):
    """What a preset's configuration has under a dotted path."""
    value = preset_config(preset)
    for name in path.split("."):
        if isinstance(value, dict):
            if name not in value:
                raise WorkflowError(
                    f"preset {preset} has no {name!r} ({path}); there are {', '.join(value)}"
                )
            value = value[name]
        else:
            value = getattr(value, name)
    return value


def note_processor_seconds():
    """Write what Snakemake itself has used, without its jobs, to a log of its own."""
    path = Path(f"logs/{PRESET}/snakemake.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"processor seconds: {time.process_time():.2f}\n")


def settings(path, without=()):
    """Params function: the JSON of one slice of the preset's configuration.

    `path` is dotted; a part in braces is a wildcard, as in "recovery.studies.{study}".
    `without` names keys of the slice that the job does not depend on.
    """

    def slice_of(wildcards):
        value = lookup(wildcards.preset, path.format(**wildcards))
        if isinstance(value, (str, int, float)):
            return str(value)
        return value.model_dump_json(exclude=set(without))

    return slice_of


def sources(script, *modules):
    """The source files that a script of workflow/scripts, and modules it loads, really use."""
    used = (
        source_files(Path(path)) for path in (Path(workflow.basedir, SCRIPTS, script), *modules)
    )
    return sorted({str(path) for paths in used for path in paths})


def gpus(wildcards):
    """GPUs that a GPU-capable job asks for."""
    return 1 if preset_config(wildcards.preset).device == "cuda" else 0
