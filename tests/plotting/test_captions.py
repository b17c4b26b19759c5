"""Captions of the report: one per figure, valid reStructuredText, rendered as the report does."""

from types import SimpleNamespace

import pytest

from spectral_laws.figure_registry import load_figures

docutils_core = pytest.importorskip("docutils.core", reason="docutils comes with snakemake")
jinja2 = pytest.importorskip("jinja2", reason="jinja2 comes with snakemake")


def render(path):
    snakemake = SimpleNamespace(
        wildcards=SimpleNamespace(preset="laptop"),
        config={"preset": "laptop", "seed": 7, "intervals": {"confidence": 0.95}},
    )
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    text = environment.from_string(path.read_text(encoding="utf-8")).render(snakemake=snakemake)
    # halt_level 1: the smallest doubt about the markup is an error.
    strict = {"report_level": 1, "halt_level": 1}
    return docutils_core.publish_parts(text, writer="html", settings_overrides=strict)["body"]


@pytest.fixture(autouse=True)
def claims_page(tmp_path, monkeypatch):
    """What the front page includes, in the folder in which the report is built."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "results" / "laptop" / "claims.html"
    page.parent.mkdir(parents=True)
    page.write_text("<table><td>λ &lt; 1</td></table>", encoding="utf-8")


def test_every_figure_has_a_caption(root):
    captions = {path.stem for path in (root / "workflow/report").glob("*.rst")}
    assert captions == {*load_figures(), "workflow", "table"}
    for name in captions:
        body = render(root / "workflow" / "report" / f"{name}.rst")
        assert "laptop" in body
        assert "<strong>" in body


def test_front_shows_the_claims_and_states_the_confidence(root):
    front = " ".join(render(root / "workflow/report/workflow.rst").split())
    assert "95 % interval" in front
    assert "<td>λ &lt; 1</td>" in front
