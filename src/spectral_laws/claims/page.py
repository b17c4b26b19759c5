"""The claims table as a page: where the report opens, and a file that a browser opens alone.

Every claim leads to its figures, to the tables it was measured from, to the rules that made them,
and to the code that measured it. In the report these links show what the report holds; in a
browser alone they lead to the files beside the page.
"""

import functools
import inspect
from collections.abc import Hashable, Iterable
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from spectral_laws.atomic import atomic_path
from spectral_laws.claims.evaluation import MEASUREMENTS
from spectral_laws.claims.registry import Claim, load_claims
from spectral_laws.claims.report import PAPERS, ours
from spectral_laws.claims.verdicts import VERDICTS

_COLORS: dict[str, str] = dict(
    zip(VERDICTS, ("#0b5f8a", "#8a5800", "#a50f15", "#595959"), strict=True)
)
_COLUMNS = ("claim", "the paper says", "paper's value", "ours", "verdict", "evidence")
_RULES = {
    "recovery/metrics": "recover_features",
    "recovery/directions": "recover_features",
    "recovery/thresholds": "recover_features",
    "recovery/baselines": "fit_baselines",
    "recovery/perturbation": "measure_perturbation",
    "recovery/error_exponents": "predict_exponents",
    "curvature/spectra": "measure_curvature",
    "curvature/finite_differences": "measure_controls",
    "curvature/exponents": "fit_exponents",
    "curvature/ladder": "fit_ladder",
    "curvature/decomposition": "fit_ladder",
    "curvature/factor_models": "fit_ladder",
    "curvature/independence": "fit_independence",
    "curvature/weights": "fit_weight_tails",
    "curvature/experiments": "compare_models",
    "optimizers/race": "train_method",
    "optimizers/tuning": "tune_method",
    "optimizers/layer_rates": "train_layer_rates",
}
"""The rule that computes a table; some are only collected by the rule that writes them."""
_STYLE = """
.claims { font: 14px/1.45 system-ui, sans-serif; color: #1a1a1a; max-width: 75rem; }
.claims h2 { font-size: 1.25em; margin: 1.4em 0 0.5em; }
.claims table { border-collapse: collapse; width: 100%; margin: 0; font-size: inherit; }
.claims th { text-align: left; font-weight: 600; color: #595959; }
.claims th, .claims td { padding: 0.45em 0.6em; vertical-align: top; overflow-wrap: anywhere; }
.claims td.verdict, .claims :is(td, th):first-child { white-space: nowrap; }
.claims th:last-child { width: 27%; }
.claims tr { border-bottom: 1px solid #ddd; }
.claims td.ours { white-space: nowrap; }
.claims a { color: #0b5f8a; text-decoration: underline; cursor: pointer; font-weight: inherit; }
.claims summary { cursor: pointer; color: #595959; }
.claims dt { font-weight: 600; margin-top: 0.5em; }
.claims dd { margin: 0; overflow-wrap: anywhere; }
.claims .verdict { color: #fff; border-radius: 0.3em; padding: 0.1em 0.5em; font-weight: 600;
  white-space: nowrap; display: inline-block; }
.claims .counts .verdict { margin: 0 0.4em 0.4em 0; }
.claims .links span { display: block; }
.claims tr.judged td { padding-top: 0; }
.claims tr[id] { border-bottom: none; }
@media (max-width: 50rem) {
  .claims thead { display: none; }
  .claims tr { display: block; padding: 0.7em 0; }
  .claims tr[id] { padding-bottom: 0; }
  .claims td { display: block; padding: 0.1em 0; }
  .claims td.ours { white-space: normal; }
  .claims td[data-label]::before { content: attr(data-label) ": "; color: #595959; }
  .claims .links span { display: inline-block; margin-right: 1.2em; padding: 0.25em 0; }
}
"""
# The report's `app` and `results` are Snakemake's; without them a link leads to its file.
_CLICK = """
var link = event.target.closest('a[data-view]');
if (!link || typeof app === 'undefined') return;
event.preventDefault();
var path = link.dataset.path;
var shown = { figure: '#app img[src^="data:image/png"]', code: '#app pre' };
({
  figure: function () { app.setView({ navbarMode: 'resultinfo', resultPath: path,
    content: 'img', contentPath: results[path].data_uri }); },
  table: function () { app.setView({ navbarMode: 'resultinfo', resultPath: path }); },
  rule: function () { app.setView({ navbarMode: 'ruleinfo', ruleinfo: path }); },
  code: function () { app.setView({ content: 'text',
    contentText: document.getElementById(path).textContent }); },
})[link.dataset.view]();
setTimeout(function () {
  var target = document.querySelector(shown[link.dataset.view] || '#app nav');
  if (target) target.scrollIntoView();
}, 100);
"""


def claims_page(table: pd.DataFrame, preset: str) -> str:
    """The page as HTML: verdict counts, then one table per paper.

    Args:
        table: as returned by ``evaluate_claims``.
        preset: whose claims these are; links lead to ``figures/<preset>`` and ``results/<preset>``
            beside which the page lies.
    """
    claims = {claim.id: claim for claim in load_claims()}
    parts = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style>",
        f'<div class="claims" onclick="{escape(_CLICK)}">',
        _counts(table),
    ]
    for paper, title in PAPERS.items():
        rows = table[table["paper"] == paper].to_dict("records")
        header = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        parts += [f"<h2>{escape(title)}</h2>", f"<table><thead><tr>{header}</tr></thead><tbody>"]
        parts += [_row(row, claims[row["id"]], preset) for row in rows]
        parts += ["</tbody></table>"]
    parts += [_source(module) for module in sorted(_modules(claims), key=lambda one: one.__name__)]
    return "\n".join([*parts, "</div>"]) + "\n"


def write_page(table: pd.DataFrame, preset: str, path: Path) -> None:
    """Write the page, complete or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(claims_page(table, preset), encoding="utf-8")


def _counts(table: pd.DataFrame) -> str:
    counts = table["verdict"].value_counts()
    badges = (_badge(verdict, f"{verdict}: {counts.get(verdict, 0)}") for verdict in VERDICTS)
    return f'<p class="counts">{"".join(badges)}</p>'


def _badge(verdict: str, text: str) -> str:
    return f'<span class="verdict" style="background:{_COLORS[verdict]}">{escape(text)}</span>'


def _row(row: dict[Hashable, Any], claim: Claim, preset: str) -> str:
    details = {
        "measured": row["quantity"],
        "reproduced if the value lies in": f"{row['accept']} ({row['rule']})",
        "direction reproduced if the interval lies in": row["direction"],
        "what the value rests on": row["reason"],
        "n": "" if pd.isna(row["n"]) else f"{row['n']:,}",
        "beside it": row["beside"],
        "no interval, because it is": claim.no_interval,
    }
    terms = "".join(
        f"<dt>{name}</dt><dd>{escape(str(text))}</dd>" for name, text in details.items() if text
    )
    judged = f"<details><summary>how it is judged</summary><dl>{terms}</dl></details>"
    cells = {
        "": f"<strong>{row['id']}</strong>",
        "statement": escape(row["statement"]),
        "paper": escape(row["paper_value"]),
        "ours": escape(ours(row)),
        "verdict": _badge(row["verdict"], row["verdict"]),
        "links": "".join(f"<span>{link}</span>" for link in _links(claim, preset)),
    }
    labels = {"paper": "paper", "ours": "ours"}
    body = "".join(
        f'<td class="{name}"'
        + (f' data-label="{labels[name]}"' if name in labels else "")
        + (' rowspan="2"' if name == "links" else "")
        + f">{text}</td>"
        for name, text in cells.items()
    )
    more = f'<tr class="judged"><td></td><td colspan="{len(_COLUMNS) - 2}">{judged}</td></tr>'
    return f'<tr id="{row["id"]}">{body}</tr>{more}'


def _links(claim: Claim, preset: str) -> Iterable[str]:
    for name in claim.figures:
        path = f"figures/{preset}/{name}.png"
        yield _link("figure", path, f"../../{path}", f"figure {name}")
    for name in claim.tables:
        path = f"results/{preset}/{name}.parquet"
        yield _link("table", path, f"{name}.parquet", f"table {name.split('/')[1]}")
    rules = {_RULES[name]: name.split("/")[0] for name in claim.tables}
    for rule, room in {**rules, "evaluate_claims": "claims"}.items():
        yield _link("rule", rule, f"../../workflow/rules/{room}.smk", f"rule {rule}")
    module = _module(claim)
    code = f"../../src/{module.__name__.replace('.', '/')}.py"
    yield _link("code", module.__name__, code, "code that measures it")


def _link(view: str, path: str, href: str, text: str) -> str:
    broken = text.replace("_", "_<wbr>")
    return f'<a data-view="{view}" data-path="{path}" href="{href}">{broken}</a>'


def _modules(claims: dict[str, Claim]) -> set[ModuleType]:
    return {_module(claim) for claim in claims.values()}


def _module(claim: Claim) -> ModuleType:
    """Where the function stands that measures a claim."""
    measure = MEASUREMENTS[claim.id].judged
    while isinstance(measure, functools.partial):
        measure = measure.func
    module = inspect.getmodule(measure)
    assert module is not None  # every measure is a function of a module
    return module


def _source(module: ModuleType) -> str:
    return f'<pre hidden id="{module.__name__}">{escape(inspect.getsource(module))}</pre>'
