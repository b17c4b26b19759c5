# Reads the configuration files strictly: Snakemake's own reading lets repeated keys through.
from pathlib import Path

from snakemake.exceptions import WorkflowError
from spectral_laws.config import read_files
from spectral_laws.errors import ConfigError

if not Path(workflow.basedir).samefile(Path.cwd()):
    raise WorkflowError(f"run this in {workflow.basedir}: its scripts work in that folder alone")
try:
    read_files(*filter(Path.is_file, [Path("config.yaml")]), *workflow.overwrite_configfiles)
except ConfigError as error:
    raise WorkflowError(str(error)) from None
