"""Snakemake that looks at its SLURM jobs every second, for tests.

The plugin's own pauses begin with `slurm-init-seconds-before-status-checks` and grow by ten seconds
each time that no job has ended.
"""

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(_executor):
    """The pause between two looks."""
    await asyncio.sleep(1)


RemoteExecutor.sleep = sleep
sys.exit(main())
