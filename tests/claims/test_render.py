"""Views of the claims: every claim and row, counts, and links that lead where they say."""

import io
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.registry import load_claims, load_registry
from spectral_laws.claims.render import (
    claims_csv,
    claims_markdown,
    claims_page,
    claims_readme,
    write_claims,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.claims.views import value_text, view_claims
from spectral_laws.palette import VERDICT_COLORS

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
    """Nothing measured, but for a few teachers of A3, an identity, and seeds of every network."""
    table = evaluate_claims(ClaimTables(), confidence=0.95, resamples=20, seed=1)

    def measured(claim, value, low, high, n_units, units, n_clusters, clusters, **other):
        first = (table["claim"] == claim) & (table["role"] == "primary")
        numbers = {"value": value, "low": low, "high": high, "missing": ""}
        counts = {"n_units": n_units, "units": units, "n_clusters": n_clusters}
        for name, entry in {**numbers, **counts, "clusters": clusters, **other}.items():
            table.loc[first, name] = entry

    measured("A3", 0.87124, 0.5, 0.9999, 1234, "directions", 9, "teachers", verdict="reproduced",
             scope='n < 5 & "some" <b>wide</b> | x')  # fmt: skip
    measured("A4", -1.0, -1.1, -0.9, 12, "teachers", 12, "teachers", verdict="reproduced")
    measured("B5", 3e-13, None, None, 40, "layers", 1, "networks", verdict="reproduced")
    measured("B12", 0.6, 0.4, 0.8, 51, "layers", 51, "trainings", verdict="inconclusive",
             n_stratum=3)  # fmt: skip
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


def row_of(page, claim):
    return page.split(f'<tr id="{claim}">')[1].split("<tr id=")[0]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_value_and_interval_as_text():
    assert value_text(1.2345, 1.1, 1.3999) == "1.23 [1.1, 1.4]"
    assert value_text(1.9847, 1.93, 2.0312) == "1.98 [1.93, 2.03]"  # rounded once, not to 1.985
    assert value_text(0.5, 0.5, 0.5) == "0.5 [0.5, 0.5]"
    assert value_text(0.0, 0.0, 0.0) == "0 [0, 0]"
    assert value_text(-4e-6, -0.005, 0.009) == "0 [-0.005, 0.009]"
    nan = float("nan")
    assert value_text(-1.2345, nan, nan) == "-1.23"
    assert value_text(nan, nan, nan) == ""


def test_what_a_value_was_computed_from(table):
    rows = {view.claim.id: view.primary for view in view_claims(table)}
    assert rows["A3"].sample == "1,234 directions of 9 teachers"
    assert (rows["A4"].sample, rows["A4"].coverage) == ("12 teachers", "")
    assert (rows["B5"].sample, rows["B5"].coverage) == ("40 layers of 1 network", "")
    assert rows["B12"].clusters == "51 trainings, 3 per stratum"
    assert (rows["A3"].coverage, rows["B12"].coverage) == ("85 to 94", "82 to 91")
    assert (rows["A1"].sample, rows["A1"].value) == ("", "")
    assert rows["A1"].missing == "the thresholds table is absent"


def test_markdown_has_every_row_rule_and_change_and_counts_on_top(table):
    lines = claims_markdown(table).splitlines()
    top = {cells(line)[0]: cells(line)[1:] for line in lines[4:11]}
    assert list(top) == list(VERDICTS)
    # of the recovery paper, the curvature paper, identities, our own
    assert top["reproduced"] == ["2", "0", "1", "0"]
    assert top["inconclusive"] == ["0", "1", "0", "0"]
    assert top["ill-posed"] == ["0", "1", "0", "0"]
    assert top["not run at this scale"] == ["9", "18", "1", "1"]
    for claim in load_claims():
        found = [cells(line) for line in lines if line.startswith(f"| {claim.id} |")]
        beside = table[table["claim"] == claim.id]
        assert [len(row) for row in found] == [5, *[6] * len(beside), 6]
        statement, *rows, rule = found
        assert statement[1] == claim.statement.replace("|", "\\|")
        assert [row[1] for row in rows] == list(beside["role"])
        assert rule[3:5] == [str(claim.accept), str(claim.direction)]
    ours = "0.871 [0.5, 1], 1,234 directions of 9 teachers"
    assert f"{ours} (nominal: 95 % intervals of so few cover about 85 to 94 %)" in "\n".join(lines)
    for change in load_registry().history:
        assert any(
            line.startswith(f"| {change.date} |") and change.change in line for line in lines
        )
    assert all(line == line.rstrip() for line in lines)
    assert "with 3, " in "\n".join(lines).replace("\n", " ")
    tables = "\n".join(lines).split("\n\n")
    for block in (text for text in tables if text.startswith("|")):
        assert len({len(cells(line)) for line in block.splitlines()}) == 1


def test_readme_has_one_row_per_claim(table):
    lines = claims_readme(table).split("\n")
    header, _, *rows = [line for line in lines if line.startswith("|")]
    kinds = {"claim": "", "identity": " (identity)", "ours": " (ours)"}
    assert [cells(row)[0] for row in rows] == [c.id + kinds[c.kind] for c in load_claims()]
    counts = "".join(line for line in lines if line.startswith("**")).split("**")[2::2]
    numbers = [[int(n) for n in re.findall(r"(?<= )\d+", line)] for line in counts]
    assert [first for first, *_ in numbers] == [sum(rest) for _, *rest in numbers]
    assert sum(first for first, *_ in numbers) == len(load_claims())
    assert len(cells(header)) == 5
    assert cells(rows[2])[3:] == ["0.871 [0.5, 1], 9 teachers (covers 85 to 94 %)", "reproduced"]
    assert cells(rows[3])[3] == "-1 [-1.1, -0.9], 12 teachers"
    assert cells(rows[0])[3:] == ["-", "not run at this scale"]


def test_csv_has_every_measurement_beside_its_claim(table):
    text = claims_csv(table)
    read = pd.read_csv(io.StringIO(text), keep_default_na=False)
    assert list(read["claim"]) == list(table["claim"])
    row = read[(read["claim"] == "A3") & (read["role"] == "primary")].iloc[0]
    assert (row["value"], row["n_clusters"], row["accept"]) == ("0.8712", "9", "[0.8, 1]")
    assert row["statement"] == load_claims()[2].statement


def test_page_has_one_row_per_claim_with_value_and_verdict(page):
    assert re.findall(r'<tr id="(\w+)">', page) == [claim.id for claim in load_claims()]
    row = row_of(page, "A3")
    for text in ("0.871 [0.5, 1]", ">reproduced<", "1,234 directions of 9 teachers", "[0.8, 1]"):
        assert text in row
    assert "nominal: 95 % intervals of so few cover about 85 to 94 %" in row
    assert "<dt>not measured, because</dt>" not in row
    other = row_of(page, "A1")
    assert "<dt>not measured, because</dt><dd>the thresholds table is absent</dd>" in other
    assert ">not run at this scale<" in other
    assert "<td>true features</td><td>the thresholds table is absent</td>" in other
    assert "<dt>ill-posed, because</dt>" in row_of(page, "B9")


def test_texts_are_no_markup(page):
    assert "n &lt; 5 &amp; &#34;some&#34; &lt;b&gt;wide" in page
    assert "<b>wide" not in page


def test_page_counts_each_paper_and_what_is_no_claim_of_a_paper_apart(page):
    counts = re.findall(r'<p class="counts">(.*?)</p>', page, re.DOTALL)
    found = [" ".join(re.sub("<.*?>", " ", text).split()) for text in counts]
    assert found == [
        "reproduced: 2 not run at this scale: 9",
        "Our own statements: not run at this scale: 1",
        "inconclusive: 1 ill-posed: 1 not run at this scale: 18",
        "Identities: reproduced: 1 not run at this scale: 1",
    ]


def test_white_is_read_on_every_verdict():
    for color in VERDICT_COLORS.values():
        levels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in levels]
        luminance = sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert 1.05 / (luminance + 0.05) >= 4.5  # WCAG AA


def test_links_lead_to_files_of_the_project(root, page):
    planned = {path.stem for path in (root / "workflow/report").glob("*.rst")}
    for claim in load_claims():
        assert set(claim.figures) <= planned
        for view in ("figure", "table", "rule", "code"):
            assert f'data-view="{view}"' in row_of(page, claim.id)
    place = root / "results" / "laptop"
    for view in ("rule", "code"):
        for link in elements(page, data_view=view):
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
    path = re.search(r'data-view="code" data-path="([\w.]+)"', row_of(page, "B13")).group(1)
    source = page[page.index(f'<pre hidden id="{path}">') :]
    assert "def measure_participation_bound(" in source[: source.index("</pre>")]


def test_all_are_written_whole(tmp_path, table, page):
    paths = {name: tmp_path / "new" / f"claims.{name}" for name in ("csv", "markdown", "html")}
    write_claims(table, "laptop", **paths)
    assert paths["html"].read_text(encoding="utf-8") == page
    assert paths["csv"].read_text(encoding="utf-8") == claims_csv(table)
    assert paths["markdown"].read_text(encoding="utf-8") == claims_markdown(table)
    assert len(list((tmp_path / "new").iterdir())) == 3
