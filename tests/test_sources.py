"""The files declared as a rule's input are those that really run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spectral_laws.figure_registry import load_figures, module_path
from spectral_laws.sources import source_files

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "workflow" / "scripts").glob("*.py"))


# A child of a process that has only other people's packages: each script as it runs alone, without
# the seconds that those packages take to load.
RUN_EACH = """
import io, json, os, runpy, sys
import matplotlib, pandas, scipy.sparse.linalg, scipy.stats, torch, torch._dynamo, typer
assert not any(name.split(".")[0] == "spectral_laws" for name in sys.modules)
for script in sys.argv[1:]:
    reader, writer = os.pipe()
    if os.fork() == 0:
        sys.argv, sys.stdout = [script, "--help"], io.StringIO()
        code = 0
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            code = stop.code or 0
        mine = [m for n, m in sys.modules.items() if n.split(".")[0] == "spectral_laws"]
        facts = [code, sys.stdout.getvalue(), [module.__file__ for module in mine]]
        with open(writer, "w") as file:
            file.write(json.dumps(facts))
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        print(file.read(), flush=True)
    os.wait()
"""


@pytest.mark.slow
def test_every_script_runs_alone_and_loads_only_what_it_declares():
    # Imports inside functions are declared too, so declared may exceed loaded; never the reverse.
    command = [sys.executable, "-c", RUN_EACH, *map(str, SCRIPTS)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    for script, line in zip(SCRIPTS, lines, strict=True):
        code, help_text, modules = json.loads(line)
        assert code == 0, script
        required = [row for row in help_text.splitlines() if row.split()[:2] == ["│", "*"]]
        assert required, f"{script}: no required option"
        loaded = {Path(name).resolve() for name in modules}
        declared = {path.resolve() for path in source_files(script)}
        assert loaded <= declared, script
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
        "plotting/claims.py": {"fitting", "plotting", "claims"},
    }
    package = ROOT / "src" / "spectral_laws"
    for module in package.glob("*/**/*.py"):
        name = str(module.relative_to(package))
        rooms = allowed.get(name) or allowed.get(name.split("/")[0], set())
        for used in source_files(module):
            parts = used.resolve().relative_to(package).parts
            if len(parts) > 1:  # settings and schemas are read by every room
                assert parts[0] in rooms | {"settings", "tables"}, f"{module} imports {used}"


def test_a_figure_is_drawn_again_for_its_own_module_and_not_for_a_new_entry():
    modules = {name: module_path(name) for name in load_figures()}
    for name, module in modules.items():
        used = {path.resolve() for path in source_files(module)}
        assert modules[name] in used
        assert not used & {*modules.values()} - {modules[name]}, name
    script = source_files(ROOT / "workflow" / "scripts" / "draw_figure.py")
    assert not {"figures.yaml", "triangle.py", "claims.py"} & {path.name for path in script}


def test_only_plotting_imports_matplotlib_and_nothing_imports_snakemake():
    package = ROOT / "src" / "spectral_laws"
    for module in package.rglob("*.py"):
        text = module.read_text()
        assert "import snakemake" not in text, module
        assert "from snakemake" not in text, module
        if "plotting" not in module.parts:
            assert "matplotlib" not in text, module


def test_a_name_hidden_by_a_lazy_package_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from spectral_laws.recovery import Teacher\n")
    with pytest.raises(ValueError, match="from its own module"):
        source_files(script)
