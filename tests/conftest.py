from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def reference() -> Path:
    """The author's result files, which are not part of the repository."""
    folder = ROOT.parent / "shared" / "reference" / "curvature"
    if not folder.is_dir():
        pytest.skip(f"the author's result files are not in {folder}")
    return folder
