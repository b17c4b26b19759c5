import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from one_machine import Cluster, why_not


@pytest.fixture(scope="session")
def cluster():
    """A running SLURM, taken down at the end."""
    if reason := why_not():
        if os.environ.get("CI") == "true":
            pytest.fail(f"SLURM must be tested here: {reason}")
        pytest.skip(reason)
    with Cluster() as running:
        yield running
