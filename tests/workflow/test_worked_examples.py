"""The examples of CONTRIBUTING.md: what they say to write is written to a copy, and run there."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.claims.registry import load_claims
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import load_schema

EXAMPLES = ("A data set", "A model", "A figure", "A claim")
STEP = re.compile(
    r"^(?:- )?\*\*(New file )?`([^`]+)`(?:, ([a-z, ]+?)(?: `([^`]+)`)?)?\*\*"
    r"(.*?)(?=\n```|\n\*\*|\n- |\n\n)(?:\n```\w+\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
"""What the file is, where in it, and the changes in a sentence or the block that follows."""
CHANGE = re.compile(
    r"(?:(before|after)\s+`([^`]+)`\s+comes|`([^`]+)`\s+becomes)\s+`([^`]+)`", re.DOTALL
)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MADE = [
    "prepare_data",
    "train_model",
    "measure_curvature",
    "plot_curvature_heads",
    "evaluate_claims",
    "render_claims",
]
"""Rules that run; the tables that others would make are written here, small."""


def line_of(text, wanted):
    """Where the one line that reads like this begins and ends."""
    found = [*re.finditer(rf"^ *{re.escape(wanted)}\n", text, re.MULTILINE)]
    assert len(found) == 1, f"the line {wanted!r} is there {len(found)} times"
    return found[0]


def changed(text, changes):
    """The text after the changes of single lines that a sentence lists."""
    for where, anchor, old, new in CHANGE.findall(changes):
        if where:
            line = line_of(text, anchor)
            at = line.start() if where == "before" else line.end()
            text = text[:at] + line.group().replace(anchor, new) + text[at:]
        else:
            assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
    return text


def copied(text, changes):
    """A copy in which the changes are made wherever they can be."""
    for _, _, old, new in CHANGE.findall(changes):
        assert old in text, f"{old!r} is not there"
        text = text.replace(old, new)
    return text


def write_example(folder, section):
    """Do what a section says; the files that it touches."""
    steps = STEP.findall(section)
    assert len(steps) == len(re.findall(r"^(?:- )?\*\*(?:New file )?`", section, re.MULTILINE))
    for new, name, place, source, changes, block in steps:
        path = folder / name
        if not (folder / name.split("/")[0]).exists():
            path = folder / "src/spectral_laws" / name
        assert path.exists() != bool(new), path
        assert len(CHANGE.findall(changes)) == changes.count("comes"), changes
        text = "" if new else path.read_text(encoding="utf-8")
        gap = "\n\n" if path.suffix == ".py" else "\n"
        if place == "from":
            text = copied((folder / source).read_text(encoding="utf-8"), changes)
        elif place == "at the end, from":
            start = line_of(text, source).start()
            text += "\n\n" + copied(text[start:].split("\n\n\n")[0] + "\n", changes)
        elif place == "at the end":
            text += gap + block
        elif place == "before":
            at = line_of(text, source).start()
            text = text[:at] + block + text[at:]
        else:
            assert place == "", place
            text = block if new else changed(text, changes)
        path.write_text(text, encoding="utf-8")
        yield str(path.relative_to(folder))


def write_tables(root, folder, complete):
    """What the figure and the claim are made from, as the tests of claims make it."""
    spec = importlib.util.spec_from_file_location("world", root / "tests/synthetic/curvature.py")
    world = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(world)
    fits = world.make_exponents(models=world.MAIN)
    tables = {"curvature/exponents": fits, "curvature/experiments": world.make_experiments(fits)}
    for name in {name for claim in load_claims() for name in claim.tables}:
        table = complete(tables.get(name, pd.DataFrame(columns=load_schema(name).names)), name)
        write_table(table, folder / f"results/smoke/{name}.parquet", Provenance({}), name)


@pytest.fixture
def examples(root, project):
    """The sections, once all their changes are made in the project, and the names of its files."""
    folder = project.folder
    shutil.copytree(root / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", folder)
    (folder / ".venv").symlink_to(sys.prefix)
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (.+)\n((?:(?!^##).*\n)*)", text, re.MULTILINE))
    touched = {name for title in EXAMPLES for name in write_example(folder, sections[title])}
    return "".join(sections[title] for title in EXAMPLES), sorted(touched)


def test_the_examples_work(root, project, examples, complete):
    text, touched = examples
    folder = project.folder

    def run(*command):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        environment |= {"PYTHONPATH": str(folder / "src")}
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        return result.stdout

    commands = [
        shlex.split(line) for block in COMMANDS.findall(text) for line in block.splitlines()
    ]
    tests = [command for command in commands if command[0] == ".venv/bin/pytest"]
    targets = [path for command in commands if "snakemake" in command[0] for path in command[3:]]
    assert (len(tests), len(targets)) == (4, 3)
    # What each of them selects, in one process, which all would spend their seconds to start.
    paths = {path for command in tests for path in command[1:] if path.startswith("tests/")}
    wanted = " or ".join(f"({command[command.index('-k') + 1]})" for command in tests)
    assert " passed" in run(tests[0][0], *sorted(paths), "-k", wanted)
    python = [name for name in touched if name.endswith((".py", ".pyi"))]
    run(".venv/bin/ruff", "check", *python)
    run(".venv/bin/ruff", "format", "--check", *python)

    write_tables(root, folder, complete)
    run(".venv/bin/snakemake", "--cores", "1", *targets, "--allowed-rules", *MADE)
    assert all((folder / target).exists() for target in targets)
    assert set(read_table(folder / targets[0])["role"]) == {"conv", "head"}
    history = read_table((folder / targets[0]).with_name("history.parquet"))
    assert history["test_accuracy"].max() > 0.5  # by chance 0.25
    claims = read_table(folder / "results/smoke/claim_measurements.parquet").set_index("claim")
    assert claims.loc["B23", "verdict"] == "reproduced"
