"""README and docs: links lead somewhere, tables are those of the code, Python blocks run."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import torch
import yaml

import spectral_laws
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.figure_registry import load_figures

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_the_version_is_one():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = re.findall(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert spectral_laws.__version__ == cited == changes[0] == version


def test_hooks_are_the_parts_of_make_check_and_hosted_ci_is_ours():
    makefile = (ROOT / "Makefile").read_text()
    (parts,) = re.findall(r"^check: (.*)$", makefile, re.MULTILINE)
    (hooks,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in hooks["hooks"]] == [f"make {p}" for p in parts.split()]
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    assert {"run": ".ci/run"} in job["steps"]


@pytest.mark.parametrize("name", ["bug", "wrong_number", "new_network"])
def test_issue_forms_are_complete(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert {"name", "description", "body"} <= form.keys()
    assert all(field["id"] and field["attributes"]["label"] for field in form["body"])


def test_the_tables_are_those_of_the_schemas():
    spec = importlib.util.spec_from_file_location("update", ROOT / "workflow/update_docs.py")
    update = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(update)
    page = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
    assert page == update.tables_page(), "make it again: make docs"


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"", text)
    for link in map("".join, links):
        if link.startswith(("https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page):
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    code = "\n".join(
        re.findall(r"^```.*?^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text)
    )
    named = re.findall(r"^(?:PRESET=\w+ )?make ([a-z]+)", code, re.MULTILINE)
    assert set(named) <= made


def test_readme_shows_every_claim():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("<!-- claims: make docs -->")[1].split("<!-- end of claims -->")[0]
    rows = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in [line for line in table.splitlines() if line.startswith("|")][2:]
    ]
    claims = load_claims()
    shown = [[row[0].split(" (")[0], *row[1:3]] for row in rows]
    assert shown == [[c.id, c.statement, c.paper_value] for c in claims]
    for (*_, ours, verdict), claim in zip(rows, claims, strict=True):
        assert verdict in VERDICTS
        number = r"-?[\d.]+(e-?\d+)?"
        interval = "" if claim.no_interval else rf" \[{number}, {number}\]"
        clusters = r"(, [\d,]+ [a-z ]+(, \d+ per stratum)?( \(covers \d+ to \d+ %\))?)"
        if verdict in ("not run at this scale", "ill-posed"):
            assert ours == "-", claim.id
        else:
            assert re.fullmatch(number + interval + clusters, ours), claim.id


def test_gallery_shows_every_figure():
    figures = {name for name, figure in load_figures().items() if not figure.needs}
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    assert {path.stem for path in (ROOT / "docs/gallery").iterdir()} == figures
    assert set(re.findall(r"!\[\w+\]\(gallery/(\w+)\.png\)", gallery)) == figures
    pictures = list((ROOT / "docs/gallery").iterdir())
    assert sum(path.stat().st_size for path in pictures) < 4e6


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_python_blocks_run(name, capsys):
    generator = torch.Generator().manual_seed(0)
    names = {
        "model": torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)
        ),
        "inputs": torch.randn(64, 12, generator=generator),
        "targets": torch.randint(8, (64,), generator=generator),
    }
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    printed = capsys.readouterr().out
    assert len(re.findall(r"^\d: alpha = -?\d+\.\d\d \+- \d+\.\d\d", printed, re.MULTILINE)) == 2
    assert isinstance(names["optimizer"], torch.optim.Optimizer)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_and_presets_that_commands_name_exist(page):
    text = page.read_text(encoding="utf-8")
    captions = {path.stem for path in (ROOT / "workflow/report").glob("*.rst")}
    named = set(re.findall(r"figures/\w+/(\w+)\.p(?:df|ng)", text))
    assert named - {"curvature_heads"} <= captions  # a worked example of CONTRIBUTING
    presets = {path.stem for path in (ROOT / "config").glob("*.yaml")}
    own = set(re.findall(r"config/(\w+)\.yaml", text))  # the page says what stands there
    assert set(re.findall(r"PRESET=(\w+)", text)) <= presets | own | {"laptop"}
