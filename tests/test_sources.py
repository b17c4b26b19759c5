"""The files declared as a rule's input are those that really run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spectral_laws.sources import source_files

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "workflow" / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_alone_and_loads_only_what_it_declares(script):
    # Imports inside functions are declared too, so declared may exceed loaded; never the reverse.
    program = (
        "import json, runpy, sys\n"
        f"sys.argv = [{str(script)!r}, '--help']\n"
        f"try: runpy.run_path({str(script)!r}, run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code\n"
        "print(json.dumps([module.__file__ for name, module in sys.modules.items()"
        " if name.split('.')[0] == 'spectral_laws']))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    *help_text, modules = result.stdout.splitlines()
    assert any(line.split()[:2] == ["│", "*"] for line in help_text), "no required option"
    loaded = {Path(name).resolve() for name in json.loads(modules)}
    declared = {path.resolve() for path in source_files(script)}
    assert loaded <= declared
    assert script in declared


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_small(script):
    assert len(script.read_text().splitlines()) <= 55


def test_rooms_do_not_import_against_the_flow():
    allowed = {
        "fitting": {"fitting"},
        "recovery": {"fitting", "recovery"},
        "curvature": {"fitting", "curvature"},
        "optimizers": {"fitting", "curvature", "optimizers"},
        "claims": {"fitting", "claims"},
        "plotting": {"fitting", "plotting"},
    }
    package = ROOT / "src" / "spectral_laws"
    for room, rooms in allowed.items():
        for module in (package / room).rglob("*.py"):
            for used in source_files(module):
                parts = used.resolve().relative_to(package).parts
                if len(parts) > 1:  # settings are read by every room
                    assert parts[0] in rooms | {"settings"}, f"{module} imports {used}"


def test_only_plotting_imports_matplotlib_and_nothing_imports_snakemake():
    package = ROOT / "src" / "spectral_laws"
    for module in package.rglob("*.py"):
        text = module.read_text()
        assert "import snakemake" not in text, module
        assert "from snakemake" not in text, module
        if "plotting" not in module.parts:
            assert "matplotlib" not in text, module
            assert "seaborn" not in text, module


def test_a_name_hidden_by_a_lazy_package_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from spectral_laws.recovery import Teacher\n")
    with pytest.raises(ValueError, match="from its own module"):
        source_files(script)
