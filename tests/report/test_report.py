"""The report of a finished run, opened in a browser as a reader would.

It opens the file that REPORT names, as in `REPORT=results/smoke/report/report.html pytest
tests/report`, and leaves its screenshots beside it. `.ci/run` builds it first; without REPORT these
tests are skipped.
"""

import os
import shutil
from pathlib import Path

import pytest

from spectral_laws.claims.registry import load_claims

pytestmark = pytest.mark.slow

SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
PART = {"A": "Recovery", "B": "Curvature"}


@pytest.fixture(scope="module")
def report():
    if "REPORT" not in os.environ:
        pytest.skip("REPORT names no report")
    return Path(os.environ["REPORT"]).resolve(strict=True)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium here (Debian: apt install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(report, browser):
    """The report, opened once, without a network."""
    context = browser.new_context(offline=True)
    # A wait ends with what it waits for; so long waits only who hangs.
    context.set_default_timeout(600_000)
    page = context.new_page()
    page.trouble, page.asked = [], []
    page.on("console", lambda line: page.trouble.append(line.text) if line.type == "error" else 0)
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(report.as_uri())
    yield page
    context.close()


@pytest.fixture(scope="module", params=SIZES)
def page(request, opened):
    """The report's first page in a window of one size."""
    width, height = SIZES[request.param]
    opened.set_viewport_size({"width": width, "height": height})
    opened.name = request.param
    if request.param != next(iter(SIZES)):
        go_home(opened)
    opened.wait_for_selector(".claims tr[id]")
    return opened


def go_home(page):
    """To the page on which the report opens."""
    page.click("nav a[href='#']:has(svg) >> nth=1")
    page.wait_for_selector(".claims tr[id]")


def menu(page):
    """What stands in the menu: of a result its caption and rule, of a rule its code."""
    return page.locator("nav").first.inner_text()


def test_it_opens_on_every_claim(page, report):
    page.screenshot(path=report.with_name(f"{page.name}.png"))
    rows = page.locator(".claims tr[id]")
    assert [row.get_attribute("id") for row in rows.all()] == [claim.id for claim in load_claims()]
    first = rows.first.bounding_box()
    assert first["y"] < SIZES[page.name][1]  # seen without scrolling
    badges = page.locator(".counts .verdict").all_inner_texts()
    assert sum(int(badge.split(": ")[1]) for badge in badges) == rows.count()


def test_claims_can_be_read_at_this_width(page):
    width = SIZES[page.name][0]
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('.claims :is(td, a, .verdict)')].map(e => {
            const box = e.getBoundingClientRect(), style = getComputedStyle(e);
            return [box.left, box.right, parseFloat(style.fontSize), e.scrollWidth - e.clientWidth];
        })"""
    )
    assert len(boxes) > 5 * len(load_claims())
    for left, right, size, beyond in boxes:
        assert 0 <= left <= right <= width
        assert size >= 13  # CSS pixels
        assert beyond <= 1  # no text runs out of its cell
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_claim_says_how_it_is_judged(page):
    row = page.locator("#A1 + tr")
    assert not row.locator("dl").is_visible()
    judged, beside = row.locator("summary").all()
    judged.click()
    assert "reproduced if the value lies in" in row.locator("dl").inner_text()
    assert row.bounding_box()["height"] < SIZES[page.name][1]
    judged.click()
    beside.click()
    assert "sensitivity" in row.locator("table").inner_text()
    beside.click()


def test_a_claim_leads_to_its_figures(page):
    for claim in load_claims() if page.name == "desktop" else load_claims()[::11]:
        go_home(page)
        links = page.locator(f"#{claim.id} a[data-view=figure]")
        assert links.count() == len(claim.figures)
        links.first.click()
        page.wait_for_function(
            "() => [...document.querySelectorAll('#app img[src^=\"data:image/png\"]')]"
            ".some(image => image.complete && image.naturalWidth > 900 && image.clientWidth > 300)"
        )
        assert claim.figures[0] in menu(page)


@pytest.mark.parametrize("claim", ["A1", "B14"])
def test_a_claim_leads_to_table_rule_and_code(page, claim):
    go_home(page)
    page.locator(f"#{claim} a[data-view=table] >> nth=0").click()
    (download,) = page.locator("nav a[download]").all()
    assert download.get_attribute("download").endswith(".parquet")
    assert download.get_attribute("href").startswith("data:")
    page.locator(f"#{claim} a[data-view=rule] >> nth=0").click()
    rule = {"A1": "recover_features", "B14": "train_method"}[claim]
    assert f"{{SCRIPTS}}/{rule}.py" in menu(page)
    page.wait_for_function("document.querySelector('#app nav').getBoundingClientRect().top >= -1")
    page.locator(f"#{claim} a[data-view=code]").click()
    code = page.locator("#app pre").last.inner_text()
    assert "def measure_" in code
    assert "\n    " in code  # still indented


def test_every_link_of_every_claim_leads_somewhere(page):
    go_home(page)
    dead = page.evaluate(
        """() => [...document.querySelectorAll('.claims a[data-view]')].filter(link => {
            const path = link.dataset.path;
            return !({figure: () => path in results, table: () => path in results,
                rule: () => path in rules, code: () => document.getElementById(path),
            })[link.dataset.view]();
        }).map(link => link.outerHTML)"""
    )
    assert dead == []
    for view in ("figure", "table", "rule", "code"):
        for claim in load_claims():
            assert page.locator(f"#{claim.id} a[data-view={view}]").count() >= 1


def test_every_figure_is_in_its_category_and_can_be_seen(page):
    figures = page.evaluate(
        "Object.keys(results).filter(name => name.startsWith('figures/') && name.endsWith('.png'))"
    )
    assert len(figures) >= 29
    for path in figures:
        page.evaluate(
            "path => app.setView({navbarMode: 'resultinfo', resultPath: path, content: 'img',"
            " contentPath: results[path].data_uri})",
            path,
        )
        page.wait_for_function(
            "path => [...document.querySelectorAll('#app img')].some(image =>"
            " image.src === results[path].data_uri && image.complete && image.naturalWidth > 900)",
            arg=path,
        )
        page.evaluate("document.querySelector('#app img[src^=\"data:image/png\"]').decode()")
        assert page.evaluate("path => results[path].caption.length", path) > 100
    categories = page.evaluate("Object.keys(categories)")
    assert sorted(name.split(",")[0] for name in categories) == ["Claims", "Curvature", "Recovery"]


def test_nothing_went_wrong_and_nothing_was_fetched(page):
    """Runs last: what the browser complained about or asked for during all of the above."""
    assert page.trouble == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
