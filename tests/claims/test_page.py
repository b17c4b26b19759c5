"""The page of the claims table: every claim, and links that lead where they say."""

import re
from html.parser import HTMLParser

import pytest

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.page import claims_page, write_page
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.tables import ClaimTables

VOID = {"meta", "wbr"}


class Reader(HTMLParser):
    """Collects attributes, and insists that every element is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.elements = [], []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def table():
    table = evaluate_claims(ClaimTables(), confidence=0.95, resamples=20, seed=1)
    row = table.index[table["id"] == "A3"][0]
    table.loc[row, ["our_value", "ci_low", "ci_high"]] = [0.8712, 0.5, 0.9999]
    table.loc[row, ["n", "verdict"]] = [1234, "reproduced"]
    table.loc[row, "reason"] = 'n < 5 & "some" <b>teachers</b>'
    return table


@pytest.fixture(scope="module")
def page(table):
    return claims_page(table, "laptop")


def elements(page, **wanted):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return [
        attributes
        for _, attributes in reader.elements
        if all(attributes.get(name.replace("_", "-")) == text for name, text in wanted.items())
    ]


def test_one_row_per_claim_with_value_interval_and_verdict(page):
    rows = re.findall(r'<tr id="(\w+)">', page)
    assert rows == [claim.id for claim in load_claims()]
    row = page[page.index('<tr id="A3">') : page.index('<tr id="A4">')]
    for text in ("0.871 [0.5, 1]", ">reproduced<", "1,234", "[0.8, 1]"):
        assert text in row
    other = page[page.index('<tr id="A4">') : page.index('<tr id="A5">')]
    assert "not run at this scale" in other
    assert "<dt>n</dt>" not in other


def test_texts_are_no_markup(page):
    assert "n &lt; 5 &amp; &quot;some&quot; &lt;b&gt;teachers" in page
    assert "<b>" not in page


def test_counts(page, table):
    for verdict, count in table["verdict"].value_counts().items():
        assert f">{verdict}: {count}</span>" in page
    assert ">direction reproduced: 0</span>" in page


def test_links_lead_to_files_of_the_project(root, page):
    planned = {path.stem for path in (root / "workflow/report").glob("*.rst")}
    for claim in load_claims():
        assert set(claim.figures) <= planned
    place = root / "results" / "laptop"
    for view in ("rule", "code"):
        links = elements(page, data_view=view)
        assert len(links) >= len(load_claims())
        for link in links:
            assert (place / link["href"]).resolve().is_file(), link
    for link in elements(page, data_view="rule"):
        text = (place / link["href"]).resolve().read_text(encoding="utf-8")
        assert f"rule {link['data-path']}:" in text
    sources = {attributes["id"] for attributes in elements(page, hidden=None) if "id" in attributes}
    assert {link["data-path"] for link in elements(page, data_view="code")} <= sources
    for link in elements(page, data_view="figure"):
        assert link["href"] == "../../" + link["data-path"]
        assert link["data-path"].startswith("figures/laptop/")
    for link in elements(page, data_view="table"):
        assert "results/laptop/" + link["href"] == link["data-path"]


def test_the_code_is_that_of_the_measuring_function(page):
    row = page[page.index('<tr id="B13">') : page.index('<tr id="B14">')]
    (link,) = elements(row, data_view="code")
    source = page[page.index(f'<pre hidden id="{link["data-path"]}">') :]
    assert "def measure_participation_bound(" in source[: source.index("</pre>")]


def test_page_is_written_whole(tmp_path, table, page):
    path = tmp_path / "results" / "claims.html"
    write_page(table, "laptop", path)
    assert path.read_text(encoding="utf-8") == page
    assert [other.name for other in path.parent.iterdir()] == ["claims.html"]
